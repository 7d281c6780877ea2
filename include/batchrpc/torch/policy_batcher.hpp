#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/torch/batch.hpp"
#include "batchrpc/torch/policy.hpp"

namespace batchrpc {

/// The answer of a policy to one observation.
struct PolicyReply {
  std::vector<at::Tensor> outputs{};  ///< one row of each output of the policy, in their order
  std::uint64_t version = 0;          ///< version of the weights that computed them
};

/// Makes a batcher whose handler is a policy:
///
///     auto policy = batchrpc::load_policy("policies/atari/frozen");
///     auto act = batchrpc::make_policy_batcher(policy, {.max_size = 16});
///     node.expose("act", act);  // PolicyReply(at::Tensor)
///
/// In `options`, `parallelism` becomes the policy's replicas and `device` the policy's device. An
/// empty `preferred_sizes` becomes the policy's batch sizes, up to max_size. A row of another type
/// or shape fails alone, with InvalidArgument. Throws InvalidArgument if the constructor of Batcher
/// does.
[[nodiscard]] BATCHRPC_EXPORT Batcher<PolicyReply(at::Tensor)> make_policy_batcher(
    const std::shared_ptr<Policy>& policy, BatchOptions options = {});

}  // namespace batchrpc
