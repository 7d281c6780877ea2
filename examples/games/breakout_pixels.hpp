#pragma once

#include <batchrpc/env/env.hpp>

#include "games/sticky_breakout.hpp"

namespace batchrpc_examples {

/// MinAtarBreakout as a screen of 84 × 84 grey pixels, for networks of Atari's size. The
/// observation is uint8 [4, 84, 84]: the last four screens, newest last; at the start of an episode
/// all four are the first screen. A cell is 8 × 8 pixels inside a border of 2. Paddle, ball, trail
/// and bricks are 60, 120, 180 and 240; empty cells are 0. As in MinAtar, each is drawn over the
/// ones named before it.
class BreakoutPixels final : public batchrpc::Env {
 public:
  static constexpr int kScreen = 84;
  static constexpr int kFrames = 4;

  BreakoutPixels();

  [[nodiscard]] const batchrpc::EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override;
  /// Throws batchrpc::InvalidArgument for an action that the spec does not allow.
  [[nodiscard]] batchrpc::EnvStep step(std::span<const std::byte> action,
                                       std::span<std::byte> observation) override;

 private:
  using Screen = std::array<std::uint8_t, std::size_t{kScreen} * kScreen>;

  void draw(Screen& screen) const;
  void write(std::span<std::byte> observation) const;

  batchrpc::EnvSpec spec_;
  StickyBreakout game_;
  std::array<Screen, kFrames> screens_{};  // a ring
  std::size_t newest_ = 0;
};

}  // namespace batchrpc_examples
