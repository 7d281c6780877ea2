#pragma once

#include <batchrpc/env/env.hpp>

#include "cartpole_observer/cartpole_env.hpp"

namespace batchrpc_examples {

/// CartPole-v1 as an environment of batchrpc. The observation is float32 [4] (position, velocity,
/// angle, angular velocity), the action one of 2 as int64, the reward 1 per step. Truncated after
/// 500 steps.
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
