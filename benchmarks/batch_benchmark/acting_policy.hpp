#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "cartpole/reinforce.hpp"

namespace batch_benchmark {

/// CartPole's policy as the batch RPC tutorial uses it: an inference, an action sampled for each
/// row, and with gradients the log-probabilities of these, which are kept to the episode's end and
/// then dropped. Thread-safe.
class ActingPolicy {
 public:
  /// `episode`: so many rows are one. Without `grad` nothing is tracked, and nothing kept.
  ActingPolicy(bool grad, std::int64_t episode) : grad_(grad), episode_(episode) {}

  /// states [B, 4] to actions, int64 [B].
  at::Tensor act(const at::Tensor& states);
  /// state [4] to its action.
  std::int64_t act_once(const at::Tensor& state);

 private:
  void keep(at::Tensor log_probabilities);

  const bool grad_;
  const std::int64_t episode_;
  batchrpc_examples::Policy policy_{std::uint64_t{543}};
  std::mutex mutex_;  // guards what follows
  std::vector<at::Tensor> kept_;
  std::int64_t rows_ = 0;
};

}  // namespace batch_benchmark
