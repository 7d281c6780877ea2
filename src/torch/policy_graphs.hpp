#pragma once

#include "torch/policy_backend.hpp"

namespace batchrpc::detail {

/// A policy on a GPU, of info.device, that records what it launches for a batch size the first
/// time, as a CUDA graph, and replays that from then on. One runs at a time. The first run of what
/// cannot be recorded throws InvalidArgument. Updates change weights where they are. Throws
/// InvalidArgument where there are no CUDA graphs.
[[nodiscard]] LoadedPolicy with_cuda_graphs(LoadedPolicy loaded);

}  // namespace batchrpc::detail
