#pragma once

#include <memory>

#include "torch/policy_backend.hpp"

namespace batchrpc::detail {

/// `backend` on a GPU, which records what it launches for a batch size the first time, as a CUDA
/// graph, and replays that from then on: of the sizes that the policy is compiled for, else of
/// those that it warms up with. One runs at a time. Throws InvalidArgument where there are no CUDA
/// graphs.
[[nodiscard]] std::unique_ptr<PolicyBackend> with_cuda_graphs(
    std::unique_ptr<PolicyBackend> backend, const PolicyInfo& info, const PolicyOptions& options);

}  // namespace batchrpc::detail
