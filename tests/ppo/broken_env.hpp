#pragma once

#include <batchrpc/env.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "games/games.hpp"

namespace batchrpc_examples::ppo {

/// CartPole, whose observation is not a number after so many steps.
class BrokenEnv final : public batchrpc::Env {
 public:
  explicit BrokenEnv(int breaks_after = 20) : breaks_after_(breaks_after) {}
  [[nodiscard]] const batchrpc::EnvSpec& spec() const noexcept override { return env_->spec(); }
  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override {
    env_->reset(seed, observation);
  }
  batchrpc::EnvStep step(std::span<const std::byte> action,
                         std::span<std::byte> observation) override {
    const batchrpc::EnvStep step = env_->step(action, observation);
    if (++steps_ == breaks_after_) {
      batchrpc::elements_of<float>(observation)[0] = std::nanf("");
    }
    return step;
  }

 private:
  const int breaks_after_;
  std::unique_ptr<batchrpc::Env> env_ = make_env("cartpole");
  int steps_ = 0;
};

}  // namespace batchrpc_examples::ppo
