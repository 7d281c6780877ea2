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

/// What a policy says of one observation.
struct PolicyReply {
  std::vector<at::Tensor> outputs{};  ///< rows of the policy's, in their order
  std::uint64_t version = 0;          ///< of the weights that made them
};

/// A batcher that a policy answers:
///
///     auto policy = batchrpc::load_policy("policies/atari/frozen");
///     auto act = batchrpc::make_policy_batcher(policy, {.max_size = 16});
///     node.expose("act", act);  // PolicyReply(at::Tensor)
///
/// Of `options`, `parallelism` is as the policy has replicas, `device` is the policy's, and
/// `preferred_sizes`, when empty, are those of its batch sizes that max_size allows. A row of
/// another type or shape fails alone, with InvalidArgument. Throws InvalidArgument where the
/// batcher does.
[[nodiscard]] BATCHRPC_EXPORT Batcher<PolicyReply(at::Tensor)> make_policy_batcher(
    const std::shared_ptr<Policy>& policy, BatchOptions options = {});

}  // namespace batchrpc
