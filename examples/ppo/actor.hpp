#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "ppo/network.hpp"

namespace batchrpc_examples::ppo {

/// What a policy decides for a batch of observations.
struct Decisions {
  at::Tensor actions;    ///< int64 [B]
  at::Tensor log_probs;  ///< float32 [B], of the actions
  at::Tensor values;     ///< float32 [B]
};

/// Of observations [B, d...].
using Decide = std::function<Decisions(const at::Tensor& observations)>;

/// Draws an action for each row of logits [B, actions]; the draws are those of `seed`, the first
/// one that with the number `first`.
Decisions draw_actions(const ActorCriticOutput& output, std::uint64_t seed, std::uint64_t first);

/// A network that decides. Not thread safe.
class Actor {
 public:
  Actor(std::shared_ptr<ActorCritic> network, std::uint64_t seed)
      : network_(std::move(network)), seed_(seed) {}

  Decisions decide(const at::Tensor& observations);

  /// How many actions it has drawn: with the seed all of its random state.
  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }
  void set_drawn(std::uint64_t drawn) { drawn_ = drawn; }

 private:
  std::shared_ptr<ActorCritic> network_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace batchrpc_examples::ppo
