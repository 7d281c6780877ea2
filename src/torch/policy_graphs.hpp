#pragma once

#include "torch/policy_backend.hpp"

namespace batchrpc::detail {

/// Makes a policy on the GPU info.device that records its kernels as a CUDA graph at the first run
/// of each batch size, and replays that afterwards. One graph runs at a time. If the network cannot
/// be recorded, its first run throws InvalidArgument. Updates change the weights in place. Throws
/// InvalidArgument if there are no CUDA graphs.
[[nodiscard]] LoadedPolicy with_cuda_graphs(LoadedPolicy loaded);

}  // namespace batchrpc::detail
