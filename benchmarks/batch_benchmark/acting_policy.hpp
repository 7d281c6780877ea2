#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "cartpole/reinforce.hpp"

namespace batch_benchmark {

/// CartPole's policy as in the batch RPC tutorial: an inference, and an action sampled for each
/// row. With gradients it keeps the actions' log-probabilities until the end of the episode.
/// Thread-safe.
class ActingPolicy {
 public:
  /// `episode` is the number of rows of an episode. Without `grad` nothing is tracked or kept.
  ActingPolicy(bool grad, std::int64_t episode) : grad_(grad), episode_(episode) {}

  /// Maps states [B, 4] to int64 actions [B].
  at::Tensor act(const at::Tensor& states);
  /// Maps a state [4] to its action.
  std::int64_t act_once(const at::Tensor& state);

 private:
  void keep(at::Tensor log_probabilities);

  const bool grad_;
  const std::int64_t episode_;
  batchrpc_examples::Policy policy_{std::uint64_t{543}};
  std::mutex mutex_;  // guards the members below
  std::vector<at::Tensor> kept_;
  std::int64_t rows_ = 0;
};

}  // namespace batch_benchmark
