// The device, memory, streams and events of CUDA's runtime.
#include <cstring>
#include <string>

#include "device.hpp"

using namespace gpu_simulation;

namespace {

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned long recorded = 0;
  unsigned long done = 0;
  bool is_captured = false;
};
Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

cudaError_t allocate(void** memory, std::size_t size, Place place, const char* what) {
  if (is_forbidden(what)) return last_error();
  *memory = gpu_simulation::allocate(size, place);
  return *memory != nullptr ? cudaSuccess : fail(cudaErrorMemoryAllocation, what);
}

cudaError_t free(void* memory, const char* what) {
  if (is_forbidden(what)) return last_error();
  gpu_simulation::free(memory);
  return cudaSuccess;
}

}  // namespace

GPU_SIMULATION_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice, "cudaSetDevice");
}
GPU_SIMULATION_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "simulated");
  properties->major = 9;
  properties->warpSize = 32;
  properties->multiProcessorCount = 4;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->totalGlobalMem = std::size_t{4} << 30;
  properties->sharedMemPerBlock = properties->sharedMemPerMultiprocessor = 49152;
  properties->l2CacheSize = 50 << 20;
  properties->textureAlignment = 512;
  properties->unifiedAddressing = 1;
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = i == 2 ? 64 : 1024;
    properties->maxGridSize[i] = i == 0 ? 2147483647 : 65535;
  }
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMultiProcessorCount       ? 4
           : attribute == cudaDevAttrComputeCapabilityMajor  ? 9
           : attribute == cudaDevAttrMaxThreadsPerBlock      ? 1024
           : attribute == cudaDevAttrWarpSize                ? 32
           : attribute == cudaDevAttrMaxSharedMemoryPerBlock ? 49152
                                                             : 0;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaDeviceSynchronize() {
  if (is_forbidden("cudaDeviceSynchronize")) return last_error();
  wait_for_all_streams();
  return cudaSuccess;
}

GPU_SIMULATION_API cudaError_t cudaGetLastError() {
  return std::exchange(last_error(), cudaSuccess);
}
GPU_SIMULATION_API cudaError_t cudaPeekAtLastError() { return last_error(); }
GPU_SIMULATION_API const char* cudaGetErrorName(cudaError_t) { return "an error"; }
GPU_SIMULATION_API const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {  // the words are CUDA's
    case cudaSuccess:
      return "no error";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "an error of the simulated GPU";
  }
}

GPU_SIMULATION_API cudaError_t cudaMalloc(void** memory, std::size_t size) {
  return allocate(memory, size, Place::device, "cudaMalloc");
}
GPU_SIMULATION_API cudaError_t cudaFree(void* memory) { return free(memory, "cudaFree"); }
GPU_SIMULATION_API cudaError_t cudaHostAlloc(void** memory, std::size_t size, unsigned) {
  return allocate(memory, size, Place::pinned, "cudaHostAlloc");
}
GPU_SIMULATION_API cudaError_t cudaFreeHost(void* memory) { return free(memory, "cudaFreeHost"); }
GPU_SIMULATION_API cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = std::size_t{3} << 30;
  *all = std::size_t{4} << 30;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                        const void* memory) {
  *attributes = {};
  const Place place = place_of(memory);
  attributes->type = place == Place::device   ? cudaMemoryTypeDevice
                     : place == Place::pinned ? cudaMemoryTypeHost
                                              : cudaMemoryTypeUnregistered;
  attributes->devicePointer = const_cast<void*>(memory);
  attributes->hostPointer = place == Place::pinned ? const_cast<void*>(memory) : nullptr;
  return cudaSuccess;
}

// As CUDA documents: from pageable memory what is copied is read before this returns; into it, it
// has come. Both are forbidden in a capture.
GPU_SIMULATION_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size,
                                               cudaMemcpyKind, cudaStream_t handle) {
  count(&Counts::copies);
  Stream& stream = stream_of(handle);
  const bool from_pageable = place_of(from) == Place::pageable;
  const bool to_pageable = place_of(to) == Place::pageable;
  if (from_pageable || to_pageable) {
    const cudaError_t refused = stream.refuse_in_capture("cudaMemcpyAsync of pageable memory");
    if (refused != cudaSuccess) return refused;
  }
  if (!from_pageable) {
    const cudaError_t added = stream.add([=] { std::memcpy(to, from, size); }, "cudaMemcpyAsync");
    if (to_pageable) stream.wait();
    return added;
  }
  return stream.add(
      [to, staged = std::string(static_cast<const char*>(from), size)] {
        std::memcpy(to, staged.data(), staged.size());
      },
      "cudaMemcpyAsync");
}
GPU_SIMULATION_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size,
                                          cudaMemcpyKind kind) {
  if (is_forbidden("cudaMemcpy")) return last_error();
  const cudaError_t error = cudaMemcpyAsync(to, from, size, kind, nullptr);
  const bool within = place_of(to) == Place::device && place_of(from) == Place::device;
  if (!within) stream_of(nullptr).wait();  // as documented
  return error;
}
GPU_SIMULATION_API cudaError_t cudaMemsetAsync(void* to, int value, std::size_t size,
                                               cudaStream_t stream) {
  return stream_of(stream).add([=] { std::memset(to, value, size); }, "cudaMemsetAsync");
}
GPU_SIMULATION_API cudaError_t cudaMemset(void* to, int value, std::size_t size) {
  if (is_forbidden("cudaMemset")) return last_error();
  const cudaError_t error = cudaMemsetAsync(to, value, size, nullptr);
  stream_of(nullptr).wait();
  return error;
}

GPU_SIMULATION_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned,
                                                            int priority) {
  *stream = make_stream(priority);
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream_of(stream).priority;
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Stream& stream = stream_of(handle);
  const cudaError_t refused = stream.refuse_in_capture("cudaStreamSynchronize");
  if (refused == cudaSuccess) stream.wait();
  return refused;
}
GPU_SIMULATION_API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Stream& stream = stream_of(handle);
  const cudaError_t refused = stream.refuse_in_capture("cudaStreamQuery");
  if (refused != cudaSuccess) return refused;
  return stream.is_idle() ? cudaSuccess : cudaErrorNotReady;
}
GPU_SIMULATION_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle,
                                                   unsigned) {
  Event& event = event_of(handle);
  unsigned long until = 0;
  bool is_captured = false;
  {
    const std::lock_guard lock(event.mutex);
    until = event.recorded;
    is_captured = event.is_captured;
  }
  if (until == 0) return cudaSuccess;
  const bool captures = stream_of(stream).capture_status() != cudaStreamCaptureStatusNone;
  if (captures != is_captured) {  // a capture is of one stream here, and none joins it
    (void)stream_of(stream).refuse_in_capture("cudaStreamWaitEvent");
    return fail(cudaErrorStreamCaptureIsolation, "cudaStreamWaitEvent");
  }
  return stream_of(stream).add(
      [&event, until] {
        std::unique_lock lock(event.mutex);
        event.changed.wait(lock, [&] { return event.done >= until; });
      },
      "cudaStreamWaitEvent");
}
GPU_SIMULATION_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                                  void* data) {
  return stream_of(stream).add([=] { function(data); }, "cudaLaunchHostFunc");
}

GPU_SIMULATION_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;  // streams may still have it
}
GPU_SIMULATION_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream,
                                                        unsigned) {
  Event& event = event_of(handle);
  unsigned long number = 0;
  {
    const std::lock_guard lock(event.mutex);
    number = ++event.recorded;
    event.is_captured = stream_of(stream).capture_status() != cudaStreamCaptureStatusNone;
  }
  return stream_of(stream).add(
      [&event, number] {
        const std::lock_guard lock(event.mutex);
        if (event.done < number) event.done = number;
        event.changed.notify_all();
      },
      "cudaEventRecord");
}
GPU_SIMULATION_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
GPU_SIMULATION_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  if (is_forbidden("cudaEventQuery")) return last_error();
  Event& event = event_of(handle);
  const std::lock_guard lock(event.mutex);
  if (event.is_captured) return fail(cudaErrorCapturedEvent, "cudaEventQuery");
  return event.done >= event.recorded ? cudaSuccess : cudaErrorNotReady;
}
GPU_SIMULATION_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  if (is_forbidden("cudaEventSynchronize")) return last_error();
  Event& event = event_of(handle);
  std::unique_lock lock(event.mutex);
  if (event.is_captured) return fail(cudaErrorCapturedEvent, "cudaEventSynchronize");
  event.changed.wait(lock, [&, until = event.recorded] { return event.done >= until; });
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}
