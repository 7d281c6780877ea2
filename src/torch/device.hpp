#pragma once

#include <string>

namespace batchrpc::detail {

/// Throws InvalidArgument that names `option` unless LibTorch has such a device here.
void require_device(const std::string& option, const std::string& device);

}  // namespace batchrpc::detail
