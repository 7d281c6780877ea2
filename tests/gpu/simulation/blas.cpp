// What a linear layer of float32 needs of cuBLAS. Matrices are stored by columns.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device.hpp"

using namespace gpu_simulation;

namespace {

struct Handle {
  cudaStream_t stream = nullptr;
  cublasMath_t math{};
  cublasPointerMode_t pointers{};
  void* workspace = nullptr;
};
Handle& handle_of(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }

struct Factor {
  const float* values;
  long leading;
  bool is_transposed;
  [[nodiscard]] float at(long row, long column) const {
    return is_transposed ? values[row * leading + column] : values[column * leading + row];
  }
};

struct Product {
  long rows, columns, inner;
  float alpha;
  Factor a, b;
  float beta;
  float* to;
  long leading;
  const float* bias;
  void* workspace;  // null: it needs none
};

cudaError_t multiply(const Product& p, cudaStream_t stream) {
  count(&Counts::kernels);
  return stream_of(stream).add(
      [p] {
        const auto mark = reinterpret_cast<std::uintptr_t>(&p);
        if (p.workspace != nullptr) std::memcpy(p.workspace, &mark, sizeof mark);
        for (long column = 0; column < p.columns; ++column) {
          for (long row = 0; row < p.rows; ++row) {
            float sum = 0;
            for (long i = 0; i < p.inner; ++i)
              sum += p.a.at(row, i) * p.b.at(i, column);
            float& to = p.to[column * p.leading + row];
            to = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * to) +
                 (p.bias == nullptr ? 0 : p.bias[row]);
          }
        }
        if (p.workspace != nullptr && std::memcmp(p.workspace, &mark, sizeof mark) != 0) {
          std::fprintf(stderr, "simulated GPU: a workspace of cuBLAS is used by others, too\n");
          std::abort();
        }
      },
      "a product of matrices");
}

cublasStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Description {
  bool is_a_transposed = false;
  bool is_b_transposed = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const float* bias = nullptr;
};
struct Layout {
  long rows, columns, leading;
};

}  // namespace

GPU_SIMULATION_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &handle_of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle_of(handle).stream = stream;
  handle_of(handle).workspace = nullptr;  // as documented: the default one, of each stream
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                                        std::size_t size) {
  handle_of(handle).workspace = size >= sizeof(std::uintptr_t) ? workspace : nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t math) {
  handle_of(handle).math = math;
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* math) {
  *math = handle_of(handle).math;
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                                          cublasPointerMode_t mode) {
  handle_of(handle).pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle,
                                                          cublasPointerMode_t* mode) {
  *mode = handle_of(handle).pointers;
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_op,
                                                 cublasOperation_t b_op, int rows, int columns,
                                                 int inner, const float* alpha, const float* a,
                                                 int a_leading, const float* b, int b_leading,
                                                 const float* beta, float* to, int leading) {
  return status_of(multiply({rows,
                             columns,
                             inner,
                             *alpha,
                             {a, a_leading, a_op != CUBLAS_OP_N},
                             {b, b_leading, b_op != CUBLAS_OP_N},
                             *beta,
                             to,
                             leading,
                             nullptr,
                             handle_of(handle).workspace},
                            handle_of(handle).stream));
}

GPU_SIMULATION_API std::size_t cublasLtGetVersion() { return 130000; }
GPU_SIMULATION_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                           cublasComputeType_t, cudaDataType_t) {
  *description = reinterpret_cast<cublasLtMatmulDesc_t>(new Description);
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete reinterpret_cast<Description*>(description);
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t which,
                               const void* value, std::size_t) {
  auto& description = *reinterpret_cast<Description*>(handle);
  const auto is_transposed = [&] {
    return *static_cast<const cublasOperation_t*>(value) != CUBLAS_OP_N;
  };
  if (which == CUBLASLT_MATMUL_DESC_TRANSA) description.is_a_transposed = is_transposed();
  if (which == CUBLASLT_MATMUL_DESC_TRANSB) description.is_b_transposed = is_transposed();
  if (which == CUBLASLT_MATMUL_DESC_EPILOGUE) {
    description.epilogue = *static_cast<const cublasLtEpilogue_t*>(value);
  }
  if (which == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
    description.bias = *static_cast<const float* const*>(value);
  }
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                                             cudaDataType, std::uint64_t rows,
                                                             std::uint64_t columns,
                                                             std::int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{static_cast<long>(rows), static_cast<long>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t,
                                                                   cublasLtMatrixLayoutAttribute_t,
                                                                   const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(1);
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
    cublasLtMatmulHeuristicResult_t* results, int* found) {
  results[0] = {};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
GPU_SIMULATION_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t handle,
                                                 const void* alpha, const void* a,
                                                 cublasLtMatrixLayout_t a_layout, const void* b,
                                                 cublasLtMatrixLayout_t b_layout, const void* beta,
                                                 const void* c, cublasLtMatrixLayout_t, void* to,
                                                 cublasLtMatrixLayout_t to_layout,
                                                 const cublasLtMatmulAlgo_t*, void* workspace,
                                                 std::size_t workspace_size, cudaStream_t stream) {
  const auto& description = *reinterpret_cast<Description*>(handle);
  const auto layout_of = [](cublasLtMatrixLayout_t layout) {
    return *reinterpret_cast<Layout*>(layout);
  };
  const bool has_bias = description.epilogue == CUBLASLT_EPILOGUE_BIAS;
  const float kept = *static_cast<const float*>(beta);
  if ((!has_bias && description.epilogue != CUBLASLT_EPILOGUE_DEFAULT) || (kept != 0 && c != to)) {
    std::fprintf(stderr, "simulated GPU: has no such cublasLtMatmul\n");
    std::abort();
  }
  const bool a_transposed = description.is_a_transposed;
  const Layout result = layout_of(to_layout);
  return status_of(multiply(
      {result.rows,
       result.columns,
       a_transposed ? layout_of(a_layout).rows : layout_of(a_layout).columns,
       *static_cast<const float*>(alpha),
       {static_cast<const float*>(a), layout_of(a_layout).leading, a_transposed},
       {static_cast<const float*>(b), layout_of(b_layout).leading, description.is_b_transposed},
       kept,
       static_cast<float*>(to),
       result.leading,
       has_bias ? description.bias : nullptr,
       workspace_size >= sizeof(std::uintptr_t) ? workspace : nullptr},
      stream));
}
