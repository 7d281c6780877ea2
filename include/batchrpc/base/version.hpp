#pragma once

#include <string_view>

#include <batchrpc/base/export.hpp>

/// The version of these headers. CMakeLists.txt reads it from here.
#define BATCHRPC_VERSION_MAJOR 0
#define BATCHRPC_VERSION_MINOR 1
#define BATCHRPC_VERSION_PATCH 0

namespace batchrpc {

/// The version of the linked library, such as "0.1.0".
BATCHRPC_EXPORT std::string_view version() noexcept;

}  // namespace batchrpc
