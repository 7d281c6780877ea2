#pragma once

#include <batchrpc/env/env.hpp>
#include <memory>
#include <utility>

#include "actor_critic/network.hpp"

namespace batchrpc_examples::ppo {

/// A policy and a value function.
using ActorCritic = actor_critic::Network;

/// What it says of B observations.
struct ActorCriticOutput {
  at::Tensor logits;  ///< float32 [B, actions], of the policy
  at::Tensor values;  ///< float32 [B]
};
inline ActorCriticOutput evaluate(ActorCritic& network, const at::Tensor& observations) {
  auto [logits, values] = network.forward(observations);
  return {std::move(logits), std::move(values)};
}

/// For observations float32 [n] two networks n-64-64 with tanh, one of the policy and one of the
/// values; for [channels, 10, 10] MinAtar's; for uint8 [4, 84, 84] RLlib's default for Atari (see
/// actor_critic/network.hpp). Orthogonal weights, biases of 0, drawn from LibTorch's default
/// generator. Throws batchrpc::InvalidArgument for other observations, and for actions that are not
/// one number of several.
std::shared_ptr<ActorCritic> make_network(const batchrpc::EnvSpec& spec);

}  // namespace batchrpc_examples::ppo
