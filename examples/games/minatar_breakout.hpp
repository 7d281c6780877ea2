#pragma once

#include <batchrpc/env/env.hpp>

#include "games/sticky_breakout.hpp"

namespace batchrpc_examples {

/// Gymnasium's MinAtar/Breakout-v1 as an environment of batchrpc. Actions are one of 3 as int64
/// (none, left, right), sticky in a tenth of the steps. The reward is 1 per brick. It terminates
/// when the ball falls and has no step limit, as in Gymnasium. The observation is boolean [4, 10,
/// 10]: paddle, ball, trail and bricks. The channels come first, as LibTorch's convolutions need
/// them; in MinAtar they come last.
class MinAtarBreakout final : public batchrpc::Env {
 public:
  MinAtarBreakout();

  [[nodiscard]] const batchrpc::EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override;
  /// Throws batchrpc::InvalidArgument for an action that the spec does not allow.
  [[nodiscard]] batchrpc::EnvStep step(std::span<const std::byte> action,
                                       std::span<std::byte> observation) override;

 private:
  void write(std::span<std::byte> observation) const;

  batchrpc::EnvSpec spec_;
  StickyBreakout game_;
};

/// Converts an environment's int64 action. Throws batchrpc::InvalidArgument unless it is 0, 1 or 2.
BreakoutBoard::Action breakout_action(std::span<const std::byte> action);

}  // namespace batchrpc_examples
