#pragma once

#include <c10/core/Device.h>

#include <string>

namespace batchrpc::detail {

/// The device of that name: "cuda" is the one that is current on this thread, by its index. Throws
/// InvalidArgument that names `option` unless LibTorch has such a device here.
[[nodiscard]] at::Device device_of(const std::string& option, const std::string& device);

/// Returns when all that is on this thread's stream of a GPU, or on its default stream, has been
/// done. Of other devices there is nothing to wait for.
/// @{
void wait_for_stream(const at::Device& device);
void wait_for_default_stream(const at::Device& device);
/// @}

}  // namespace batchrpc::detail
