#pragma once

#include <array>
#include <cstdint>

namespace batchrpc_examples {

/// The rules of MinAtar's Breakout (Young and Tian 2019, package minatar 1.0.15) on a board of 10 ×
/// 10 cells, without randomness. x goes right, y down. The paddle moves in row 9, the bricks are in
/// rows 1 to 3, and the ball moves one cell diagonally per step. All rules match the package, as
/// recorded trajectories show. There are no difficulty settings, because the package's ramp does
/// nothing in this game.
class BreakoutBoard {
 public:
  static constexpr int kSize = 10;
  static constexpr int kChannels = 4;
  static constexpr int kCells = kSize * kSize;

  enum class Action : std::uint8_t { none, left, right };  ///< MinAtar's minimal action set
  enum class Corner : std::uint8_t { left, right };        ///< where the ball starts downwards
  enum Channel : std::uint8_t { paddle, ball, trail, brick };

  struct Outcome {
    int reward = 0;      ///< 1 for a brick that broke
    bool ended = false;  ///< the ball fell past the paddle
  };

  /// Sets up the board for an episode.
  void start(Corner corner);
  /// Throws std::logic_error after the end of an episode.
  Outcome move(Action action);

  /// The planes in the order of Channel, each row by row: [4, 10, 10], of 0 and 1.
  [[nodiscard]] std::array<std::uint8_t, kChannels * kCells> planes() const;
  /// For each cell, row by row, 1 + the last Channel that has something there, or 0.
  [[nodiscard]] std::array<std::uint8_t, kCells> topmost() const;

 private:
  struct Cell {
    int x = 0;
    int y = 0;
    [[nodiscard]] std::size_t index() const { return static_cast<std::size_t>(y * kSize + x); }
  };

  void set_up_bricks();
  [[nodiscard]] bool is_cleared() const;

  std::array<std::uint8_t, kCells> bricks_{};
  Cell ball_{};
  Cell trail_{};  // the ball's position one step before
  int step_x_ = 1;
  int step_y_ = 1;
  int paddle_ = 4;
  bool in_bricks_ = false;  // a brick broke, and the ball is still among bricks
  bool ended_ = true;
};

}  // namespace batchrpc_examples
