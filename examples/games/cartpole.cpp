#include "games/cartpole.hpp"

#include <algorithm>

namespace batchrpc_examples {

namespace rpc = batchrpc;

CartPole::CartPole()
    : spec_{.observation = {rpc::ElementType::float32, {4}}, .actions = CartPoleEnv::kActions} {}

void CartPole::write(std::span<std::byte> observation) const {
  std::ranges::copy(env_.observation(), rpc::elements_of<float>(observation).begin());
}

void CartPole::reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) {
  if (seed) {
    env_ = CartPoleEnv(*seed);
  } else {
    env_.reset();
  }
  write(observation);
}

rpc::EnvStep CartPole::step(std::span<const std::byte> action, std::span<std::byte> observation) {
  const CartPoleEnv::Step step =
      env_.step(static_cast<int>(rpc::elements_of<std::int64_t>(action)[0]));
  write(observation);
  return {.reward = static_cast<float>(step.reward),
          .terminated = step.terminated,
          .truncated = step.truncated};
}

}  // namespace batchrpc_examples
