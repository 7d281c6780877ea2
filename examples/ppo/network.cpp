#include "ppo/network.hpp"

#include <batchrpc/base/error.hpp>
#include <batchrpc/torch/env.hpp>

namespace batchrpc_examples::ppo {
namespace {

std::shared_ptr<ActorCritic> network_for(const batchrpc::EnvSpec& spec) {
  const auto& shape = spec.observation.shape;
  const batchrpc::RowForm form{batchrpc::scalar_type_of(spec.observation.type), shape};
  if (shape.size() == 1 && form.type == at::kFloat) {
    return actor_critic::make_two_mlps(shape[0], spec.actions);
  }
  if (shape.size() == 3 && shape[1] == 10 && shape[2] == 10) {
    return actor_critic::make_minatar(form, spec.actions);
  }
  if (form == batchrpc::RowForm{at::kByte, {4, 84, 84}}) {
    return actor_critic::make_atari(spec.actions);
  }
  throw batchrpc::InvalidArgument(
      "this program has no network for observations of " + to_string(spec.observation) +
      "; supported are float32 [n], [channels, 10, 10] and uint8 [4, 84, 84]");
}

}  // namespace

std::shared_ptr<ActorCritic> make_network(const batchrpc::EnvSpec& spec) {
  if (spec.actions < 1 || spec.action.elements() != 1) {
    throw batchrpc::InvalidArgument("PPO needs environments with discrete actions, not " +
                                    to_string(spec));
  }
  std::shared_ptr<ActorCritic> network = network_for(spec);
  actor_critic::initialize_orthogonally(*network);
  return network;
}

}  // namespace batchrpc_examples::ppo
