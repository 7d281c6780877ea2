#pragma once

#include <ATen/ATen.h>

#include <batchrpc/torch/policy.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "ppo/network.hpp"

namespace batchrpc_examples::ppo {

/// A policy's decisions for a batch of observations.
struct Decisions {
  at::Tensor actions;        ///< int64 [B]
  at::Tensor log_probs;      ///< float32 [B], of the actions
  at::Tensor values;         ///< float32 [B]
  std::int64_t version = 0;  ///< version of the weights that decided, as the training counts it
};

/// Decides for observations [B, d...].
using Decide = std::function<Decisions(const at::Tensor& observations)>;

/// Draws one action for each row of logits [B, actions], for a policy that use_weights() updates.
/// The random numbers come from `seed`; the first has the number `first`.
Decisions draw_actions(const batchrpc::PolicyOutput& output, std::uint64_t seed,
                       std::uint64_t first);

/// A policy that makes decisions. Not thread-safe.
class Actor {
 public:
  Actor(std::shared_ptr<batchrpc::Policy> policy, std::uint64_t seed)
      : policy_(std::move(policy)), seed_(seed) {}

  Decisions decide(const at::Tensor& observations);
  /// Uses the weights of a network like the policy's from now on. `version` must be above the
  /// previous one; with the same version nothing changes.
  void use(const ActorCritic& network, std::int64_t version);

  /// How many actions it has drawn: with the seed, this is its whole random state.
  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }
  void set_drawn(std::uint64_t drawn) { drawn_ = drawn; }

 private:
  std::shared_ptr<batchrpc::Policy> policy_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

/// Sets a policy's weights to those of `network`, which have the version `version` in the training.
/// For the policy this is version + 1, because its initial weights, version 0, belong to no
/// training.
void use_weights(batchrpc::Policy& policy, const ActorCritic& network, std::int64_t version);

}  // namespace batchrpc_examples::ppo
