#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// The policy's choice for B states.
struct Choice {
  at::Tensor actions;    ///< int64 [B]
  at::Tensor log_probs;  ///< float [B], with their graph unless gradients are off
};

/// The original's dummy policy: flatten, Linear(in, out), nlayers × Linear(out, out) without
/// activations, a softmax over dimension 0 (the batch), and a sample from the categorical
/// distribution that torch.distributions.Categorical makes of that. Several threads may call it at
/// once.
class Policy {
 public:
  /// Draws the weights from LibTorch's generator.
  explicit Policy(const Setting& setting);

  /// Chooses actions for states float [B, state_size...].
  Choice choose(const at::Tensor& states);

 private:
  torch::nn::Sequential model_;
  bool gradients_;
};

}  // namespace rl_benchmark
