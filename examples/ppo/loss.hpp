#pragma once

#include "ppo/network.hpp"
#include "ppo/settings.hpp"

namespace batchrpc_examples::ppo {

/// Rows to learn from, each of one environment's step.
struct Rows {
  at::Tensor observations;  ///< [M, d...]
  at::Tensor actions;       ///< int64 [M]
  at::Tensor log_probs;     ///< float32 [M], and so the others
  at::Tensor values;
  at::Tensor advantages;
  at::Tensor returns;

  [[nodiscard]] std::int64_t size() const { return actions.size(0); }
  /// Copies of the rows with these numbers, int64 [m].
  [[nodiscard]] Rows select(const at::Tensor& numbers) const;
};

/// Scalars, float32.
struct Loss {
  at::Tensor total;  ///< policy + value coefficient · value - entropy coefficient · entropy
  at::Tensor policy;
  at::Tensor value;          ///< half the mean square of the error
  at::Tensor entropy;        ///< mean of the policy's, in nats
  at::Tensor approx_kl;      ///< of policies at sampling and now: mean of ratio - 1 - log ratio
  at::Tensor clip_fraction;  ///< share of the rows whose ratio is out of the range
};

/// PPO's (Schulman et al. 2017), for what the network gives for these rows' observations. All but
/// `total` are detached.
Loss ppo_loss(const ActorCriticOutput& output, const Rows& rows, const PpoSettings& settings);

}  // namespace batchrpc_examples::ppo
