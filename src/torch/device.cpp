#include "torch/device.hpp"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

at::Device device_of(const std::string& option, const std::string& device) {
  std::string why = "LibTorch has no such device here";
  try {
    const at::Device asked(device);
    if (asked.is_cpu()) return {at::kCPU};
    if (asked.is_cuda()) {
      const auto count = static_cast<int>(torch::cuda::device_count());
      const auto index =
          asked.has_index() || count == 0
              ? asked.index()
              : static_cast<c10::DeviceIndex>(at::detail::getCUDAHooks().current_device());
      const bool is_read = asked.str() == device;  // LibTorch turns "cuda:256" into "cuda:0"
      if (is_read && count > 0 && index < count) return {at::kCUDA, index};
      why += "; CUDA devices: " + std::to_string(count);
    }
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  }
  throw InvalidArgument(option + " '" + device + "': " + why);
}

void wait_for_stream(const at::Device& device) {
  if (!device.is_cuda()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

void wait_for_default_stream(const at::Device& device) {
  if (!device.is_cuda()) return;
  c10::impl::VirtualGuardImpl(device.type()).getDefaultStream(device).synchronize();
}

}  // namespace batchrpc::detail
