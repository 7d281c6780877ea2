#pragma once

#include "batchrpc/base/export.hpp"

namespace batchrpc {

namespace detail {
class OperatorSource;
}  // namespace detail

/// For NodeOptions::profiling.operators: has the operators of LibTorch that a node's calls run
/// recorded for profilers, its own and those of its callers, and shows the calls that it makes to
/// LibTorch's own profiler (docs/profiling.md).
///
///     batchrpc::Node node({.name = "worker1", .rank = 1, .world_size = 2,
///                          .join = "tcp://127.0.0.1:29500",
///                          .operators = batchrpc::torch_operators()});
///
/// Never null, always the same, and never destroyed.
[[nodiscard]] BATCHRPC_EXPORT const detail::OperatorSource* torch_operators() noexcept;

}  // namespace batchrpc
