#pragma once

#include <c10/core/Device.h>

#include <string>

namespace batchrpc::detail {

/// The device of that name: "cuda" is the one that is current on this thread, by its index. Throws
/// InvalidArgument that names `option` unless LibTorch has such a device here.
[[nodiscard]] at::Device device_of(const std::string& option, const std::string& device);

}  // namespace batchrpc::detail
