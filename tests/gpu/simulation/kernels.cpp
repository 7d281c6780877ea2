// What LibTorch launches, by the names of its kernels: those of the tests' networks.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <unordered_map>

#include "device.hpp"

using namespace gpu_simulation;

namespace {

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, std::string> names;
  std::set<std::string> told;
};
Kernels& kernels() {
  static auto* const all = new Kernels;
  return *all;
}

// Parameters are laid out as in the LibTorch that scripts/simulated_gpu.sh names.
[[noreturn]] void differ(const std::string& kernel) {
  std::fprintf(stderr, "simulated GPU: parameters are not as they were known: %s\n",
               kernel.c_str());
  std::abort();
}

struct NameOf {
  const std::string& kernel;
  bool operator()(const char* part) const { return kernel.find(part) != std::string::npos; }
};

// vectorized_elementwise_kernel(int size, Functor, std::array<char*, tensors>): result first.
Operation elementwise(const std::string& name, void** parameters) {
  const int size = *static_cast<int*>(parameters[0]);
  const auto* const functor = static_cast<const float*>(parameters[1]);
  char** const tensors = static_cast<char**>(parameters[2]);
  const NameOf is{name};
  const auto floats = [&](int index) { return reinterpret_cast<float*>(tensors[index]); };
  if (is("tanh_kernel_cuda")) {
    return [size, to = floats(0), from = floats(1)] {
      for (int i = 0; i < size; ++i)
        to[i] = std::tanh(from[i]);
    };
  }
  if (is("FillFunctorIfE")) {
    return [size, to = floats(0), value = functor[0]] {
      for (int i = 0; i < size; ++i)
        to[i] = value;
    };
  }
  if (is("AUnaryFunctorIfff") && is("MulFunctor")) {
    return [size, to = floats(0), from = floats(1), factor = functor[1]] {
      for (int i = 0; i < size; ++i)
        to[i] = factor * from[i];
    };
  }
  if (is("compare_scalar_kernel")) {  // always false
    return [size, to = tensors[0]] { std::memset(to, 0, static_cast<std::size_t>(size)); };
  }
  return nullptr;
}

// A copy with other strides: elementwise_kernel(int size, lambda with this in it).
Operation strided_copy(const std::string& name, void** parameters) {
  struct Layout {
    int dimensions;
    struct {
      unsigned divisor, magic, shift;
    } sizes[25];
    unsigned strides[25][2];  // bytes
    char* tensors[2];
  };
  const int size = *static_cast<int*>(parameters[0]);
  const Layout layout = *static_cast<Layout*>(parameters[1]);
  for (const char* tensor : layout.tensors)
    if (place_of(tensor) != Place::device) differ(name);
  return [size, layout] {
    for (int i = 0; i < size; ++i) {
      auto rest = static_cast<unsigned>(i);
      unsigned to = 0;
      unsigned from = 0;
      for (int d = 0; d < layout.dimensions; ++d) {
        const unsigned index = rest % layout.sizes[d].divisor;
        rest /= layout.sizes[d].divisor;
        to += index * layout.strides[d][0];
        from += index * layout.strides[d][1];
      }
      std::memcpy(layout.tensors[0] + to, layout.tensors[1] + from, sizeof(float));
    }
  };
}

// at::cat of float tensors along their first dimension: (T* to, metadata, …), one row of the grid
// an input. The metadata are most pointers, then as many of 4 bytes each: offsets, sizes, elements.
Operation cat(const std::string& name, unsigned inputs, void** parameters) {
  const NameOf is{name};
  const bool is_of_many = is("Li128ELi1E");
  if (!is_of_many && !is("Li64ELi64E")) differ(name);
  const std::size_t most = is_of_many ? 128 : 64;
  char* to = *static_cast<char**>(parameters[0]);
  auto* const pointers = static_cast<const char* const*>(parameters[1]);
  const auto* const elements = reinterpret_cast<const unsigned*>(pointers + most) + 2 * most;
  std::vector<std::pair<const char*, std::size_t>> parts;
  for (unsigned i = 0; i < inputs; ++i) {
    if (place_of(pointers[i]) != Place::device) differ(name);
    parts.emplace_back(pointers[i], elements[i] * sizeof(float));
  }
  return [to, parts] {
    char* at = to;
    for (const auto& [from, size] : parts) {
      std::memcpy(at, from, size);
      at += size;
    }
  };
}

// A sum of floats, which is none: always 0. Its ReduceOp has the result's address at that word.
Operation sum(const std::string& name, void** parameters) {
  constexpr int kResult = 124;
  char* const to = static_cast<char**>(parameters[0])[kResult];
  if (place_of(to) != Place::device) differ(name);
  return [to] { std::memset(to, 0, sizeof(float)); };
}

Operation operation_of(const std::string& name, dim3 grid, void** parameters) {
  const NameOf is{name};
  if (is("vectorized_elementwise_kernel")) return elementwise(name, parameters);
  if (is("elementwise_kernel") && is("direct_copy_kernel_cuda") && is("UlfE_")) {
    return strided_copy(name, parameters);
  }
  if (is("CatArrayBatchedCopy")) return cat(name, grid.y, parameters);
  if (is("reduce_kernel") && is("sum_functorIfff")) return sum(name, parameters);
  return nullptr;
}

cudaError_t launch(const void* function, dim3 grid, void** parameters, cudaStream_t stream) {
  count(&Counts::kernels);
  std::string name = "?";
  Operation operation;
  {
    const std::lock_guard lock(kernels().mutex);
    const auto known = kernels().names.find(function);
    if (known != kernels().names.end()) name = known->second;
    operation = operation_of(name, grid, parameters);
    if (!operation && kernels().told.insert(name).second) {
      std::fprintf(stderr, "simulated GPU: computes nothing: %.200s\n", name.c_str());
    }
  }
  return stream_of(stream).add(
      operation ? operation : [] {}, "a kernel");
}

}  // namespace

GPU_SIMULATION_API void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
GPU_SIMULATION_API void __cudaRegisterFatBinaryEnd(void**) {}
GPU_SIMULATION_API void __cudaUnregisterFatBinary(void**) {}
GPU_SIMULATION_API void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int,
                                          int) {}
GPU_SIMULATION_API void __cudaRegisterFunction(void**, const char* function, char*,
                                               const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                               int*) {
  const std::lock_guard lock(kernels().mutex);
  kernels().names[function] = name;
}

namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration> configurations;

}  // namespace

GPU_SIMULATION_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                                        cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
GPU_SIMULATION_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                          std::size_t* shared, void* stream) {
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3,
                                                  void** parameters, std::size_t,
                                                  cudaStream_t stream) {
  return launch(kernel, grid, parameters, stream);
}
GPU_SIMULATION_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3,
                                                void** parameters, std::size_t,
                                                cudaStream_t stream) {
  return launch(function, grid, parameters, stream);
}
GPU_SIMULATION_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int, std::size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}
