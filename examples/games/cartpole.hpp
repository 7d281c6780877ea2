#pragma once

#include <batchrpc/env/env.hpp>

#include "cartpole_observer/cartpole_env.hpp"

namespace batchrpc_examples {

/// CartPole-v1 as an environment of batchrpc: observation float32 [4] (position, velocity, angle,
/// angular velocity), action int64 of 2, a reward of 1 a step; truncated after 500 steps.
class CartPole final : public batchrpc::Env {
 public:
  CartPole();

  [[nodiscard]] const batchrpc::EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override;
  [[nodiscard]] batchrpc::EnvStep step(std::span<const std::byte> action,
                                       std::span<std::byte> observation) override;

 private:
  void write(std::span<std::byte> observation) const;

  batchrpc::EnvSpec spec_;
  CartPoleEnv env_{0};
};

}  // namespace batchrpc_examples
