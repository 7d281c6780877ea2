#pragma once

#include <batchrpc/env/env.hpp>

#include "games/sticky_breakout.hpp"

namespace batchrpc_examples {

/// Gymnasium's MinAtar/Breakout-v1 as an environment of batchrpc: actions int64 of 3 (none, left,
/// right), sticky in a tenth of the steps; a reward of 1 a brick; terminated when the ball falls,
/// and without a limit of steps, as there. The observation is boolean [4, 10, 10]: paddle, ball,
/// trail and bricks, the channels first as convolutions of LibTorch take them, where MinAtar has
/// them last.
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

/// Of an environment's action, int64. Throws batchrpc::InvalidArgument unless it is 0, 1 or 2.
BreakoutBoard::Action breakout_action(std::span<const std::byte> action);

}  // namespace batchrpc_examples
