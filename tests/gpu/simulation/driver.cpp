// What LibTorch asks of the driver: this library is libcuda.so.1, too.
#include <cstring>

#include "device.hpp"

#define UNSUPPORTED(name) \
  GPU_SIMULATION_API int name() { return kNotSupported; }

namespace {

constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int unsupported() { return kNotSupported; }

}  // namespace

GPU_SIMULATION_API int cuCtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(1);
  return 0;
}
GPU_SIMULATION_API int cuCtxSetCurrent(void*) { return 0; }
GPU_SIMULATION_API int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}
GPU_SIMULATION_API int cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return 0;
}
GPU_SIMULATION_API int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return 0;
}
GPU_SIMULATION_API int cuDevicePrimaryCtxRetain(void** context, int) {
  return cuCtxGetCurrent(context);
}
GPU_SIMULATION_API int cuGetErrorString(int, const char** text) {
  *text = "an error of the simulated GPU's driver";
  return 0;
}
GPU_SIMULATION_API int cuPointerGetAttribute(void* value, int, unsigned long long) {
  *static_cast<int*>(value) = 0;
  return 0;
}
UNSUPPORTED(cuFuncGetAttribute)
UNSUPPORTED(cuFuncSetAttribute)
UNSUPPORTED(cuFuncSetCacheConfig)
UNSUPPORTED(cuLaunchCooperativeKernel)
UNSUPPORTED(cuLaunchKernel)
UNSUPPORTED(cuLinkAddData_v2)
UNSUPPORTED(cuLinkComplete)
UNSUPPORTED(cuLinkCreate_v2)
UNSUPPORTED(cuModuleGetFunction)
UNSUPPORTED(cuModuleLoad)
UNSUPPORTED(cuModuleLoadData)
UNSUPPORTED(cuModuleLoadDataEx)
UNSUPPORTED(cuModuleUnload)
UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
UNSUPPORTED(cuTensorMapEncodeTiled)

GPU_SIMULATION_API cudaError_t
cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                 cudaDriverEntryPointQueryResult* result) {
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  *function = is("cuCtxGetCurrent")        ? reinterpret_cast<void*>(cuCtxGetCurrent)
              : is("cuDeviceGet")          ? reinterpret_cast<void*>(cuDeviceGet)
              : is("cuDeviceGetAttribute") ? reinterpret_cast<void*>(cuDeviceGetAttribute)
              : is("cuGetErrorString")     ? reinterpret_cast<void*>(cuGetErrorString)
                                           : reinterpret_cast<void*>(unsupported);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
