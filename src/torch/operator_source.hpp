#pragma once

#include "batchrpc/trace/operator_source.hpp"

namespace batchrpc::detail {

/// What batchrpc_operator_source() returns.
[[nodiscard]] const OperatorSource& torch_operator_source() noexcept;

}  // namespace batchrpc::detail
