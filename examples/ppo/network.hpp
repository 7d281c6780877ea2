#pragma once

#include <torch/nn/module.h>

#include <batchrpc/env/env.hpp>
#include <memory>

namespace batchrpc_examples::ppo {

struct ActorCriticOutput {
  at::Tensor logits;  ///< float32 [B, actions], of the policy
  at::Tensor values;  ///< float32 [B]
};

/// A policy and a value function. Takes observations [B, d...] as they come from the environments:
/// float32, boolean (0 and 1), or uint8, which is divided by 255.
class ActorCritic : public torch::nn::Module {
 public:
  virtual ActorCriticOutput forward(const at::Tensor& observations) = 0;
};

/// For observations [n] two networks n-64-64 with tanh, one of the policy and one of the values;
/// for [channels, 10, 10] MinAtar's (16 convolutions 3 × 3, 128 units); for [channels, 84, 84]
/// RLlib's default for Atari (16 of 8 × 8 by steps of 4, 32 of 4 × 4 by 2, 256 of 11 × 11); the
/// latter two with ReLU, shared by policy and values. Orthogonal weights (gains √2, .01 of the
/// policy's and 1 of the value's last layer), biases of 0, drawn from LibTorch's default generator.
/// Throws batchrpc::InvalidArgument for other observations, and for actions that are not one number
/// of several.
std::shared_ptr<ActorCritic> make_network(const batchrpc::EnvSpec& spec);

}  // namespace batchrpc_examples::ppo
