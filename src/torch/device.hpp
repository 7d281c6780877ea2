#pragma once

#include <c10/core/Device.h>

#include <string>

namespace batchrpc::detail {

/// Parses a device name; "cuda" becomes the device that is current on this thread, with its index.
/// If LibTorch has no such device here, throws an InvalidArgument that names `option`.
[[nodiscard]] at::Device device_of(const std::string& option, const std::string& device);

/// Waits until all work on this thread's stream of a GPU, or on its default stream, is done. Other
/// devices need no waiting.
/// @{
void wait_for_stream(const at::Device& device);
void wait_for_default_stream(const at::Device& device);
/// @}

}  // namespace batchrpc::detail
