#pragma once

#include <span>

#include "batchrpc/call/function_kind.hpp"

namespace batchrpc::detail {

/// The kinds of functions behind remote references, for a node's FunctionTable.
[[nodiscard]] std::span<const FunctionKind> object_kinds() noexcept;

}  // namespace batchrpc::detail
