#pragma once

#include "ppo/network.hpp"
#include "ppo/settings.hpp"

namespace batchrpc_examples::ppo {

/// Rows to learn from; each is one step of one environment.
struct Rows {
  at::Tensor observations;  ///< [M, d...]
  at::Tensor actions;       ///< int64 [M]
  at::Tensor log_probs;     ///< float32 [M], like the other members
  at::Tensor values;
  at::Tensor advantages;
  at::Tensor returns;

  [[nodiscard]] std::int64_t size() const { return actions.size(0); }
  /// Copies the rows with these numbers, int64 [m].
  [[nodiscard]] Rows select(const at::Tensor& numbers) const;
};

/// Float32 scalars.
struct Loss {
  at::Tensor total;  ///< policy + value coefficient · value - entropy coefficient · entropy
  at::Tensor policy;
  at::Tensor value;    ///< half the mean squared error
  at::Tensor entropy;  ///< mean entropy of the policy, in nats
  at::Tensor
      approx_kl;  ///< between the policies at sampling and now: mean of ratio - 1 - log ratio
  at::Tensor clip_fraction;  ///< fraction of rows whose ratio is outside the range
};

/// PPO's loss (Schulman et al. 2017), from the network's output for these rows' observations. All
/// members except `total` are detached.
Loss ppo_loss(const ActorCriticOutput& output, const Rows& rows, const PpoSettings& settings);

}  // namespace batchrpc_examples::ppo
