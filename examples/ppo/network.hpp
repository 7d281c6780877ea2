#pragma once

#include <batchrpc/env/env.hpp>
#include <memory>
#include <utility>

#include "actor_critic/network.hpp"

namespace batchrpc_examples::ppo {

/// A policy and a value function.
using ActorCritic = actor_critic::Network;

/// The network's output for B observations.
struct ActorCriticOutput {
  at::Tensor logits;  ///< float32 [B, actions], logits of the policy
  at::Tensor values;  ///< float32 [B]
};
inline ActorCriticOutput evaluate(ActorCritic& network, const at::Tensor& observations) {
  auto [logits, values] = network.forward(observations);
  return {std::move(logits), std::move(values)};
}

/// Makes a network for the environment's observations, with orthogonal weights and zero biases from
/// LibTorch's default generator:
///
/// - float32 [n]: two networks n-64-64 with tanh, one for the policy and one for the values;
/// - [channels, 10, 10]: MinAtar's network;
/// - uint8 [4, 84, 84]: RLlib's default for Atari (see actor_critic/network.hpp).
///
/// Throws batchrpc::InvalidArgument for other observations, and for actions that are not one of
/// several numbers.
std::shared_ptr<ActorCritic> make_network(const batchrpc::EnvSpec& spec);

}  // namespace batchrpc_examples::ppo
