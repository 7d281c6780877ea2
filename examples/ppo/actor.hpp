#pragma once

#include <ATen/ATen.h>

#include <batchrpc/torch/policy.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "ppo/network.hpp"

namespace batchrpc_examples::ppo {

/// What a policy decides for a batch of observations.
struct Decisions {
  at::Tensor actions;        ///< int64 [B]
  at::Tensor log_probs;      ///< float32 [B], of the actions
  at::Tensor values;         ///< float32 [B]
  std::int64_t version = 0;  ///< of the weights that decided, as the training counts
};

/// Of observations [B, d...].
using Decide = std::function<Decisions(const at::Tensor& observations)>;

/// What a policy that use_weights() updates decides: of logits [B, actions] an action a row. The
/// draws are those of `seed`, the first one that with the number `first`.
Decisions draw_actions(const batchrpc::PolicyOutput& output, std::uint64_t seed,
                       std::uint64_t first);

/// A policy that decides. Not thread safe.
class Actor {
 public:
  Actor(std::shared_ptr<batchrpc::Policy> policy, std::uint64_t seed)
      : policy_(std::move(policy)), seed_(seed) {}

  Decisions decide(const at::Tensor& observations);
  /// From now on by the weights of a network like the policy's, of a version above the one before;
  /// of the same version: as before.
  void use(const ActorCritic& network, std::int64_t version);

  /// How many actions it has drawn: with the seed all of its random state.
  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }
  void set_drawn(std::uint64_t drawn) { drawn_ = drawn; }

 private:
  std::shared_ptr<batchrpc::Policy> policy_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

/// Has a policy use the weights of `network`, which are of version `version` of the training. Of
/// the policy that is version + 1, as it begins with 0, of weights of nobody.
void use_weights(batchrpc::Policy& policy, const ActorCritic& network, std::int64_t version);

}  // namespace batchrpc_examples::ppo
