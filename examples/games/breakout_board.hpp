#pragma once

#include <array>
#include <cstdint>

namespace batchrpc_examples {

/// The rules of MinAtar's Breakout (Young and Tian 2019, package minatar 1.0.15) on a board of
/// 10 × 10 cells, without anything random: x goes right, y down. The paddle moves in row 9, three
/// rows of bricks are in rows 1 to 3, and the ball moves one cell diagonally a step. The rules are
/// the package's to the last oddity, as recorded trajectories show; it has no settings of
/// difficulty, for its ramp does nothing in this game.
class BreakoutBoard {
 public:
  static constexpr int kSize = 10;
  static constexpr int kChannels = 4;
  static constexpr int kCells = kSize * kSize;

  enum class Action : std::uint8_t { none, left, right };  ///< MinAtar's minimal action set
  enum class Corner : std::uint8_t { left, right };  ///< where the ball starts from, downwards
  enum Channel : std::uint8_t { paddle, ball, trail, brick };

  struct Outcome {
    int reward = 0;      ///< 1 for a brick that broke
    bool ended = false;  ///< the ball fell beside the paddle
  };

  /// Sets up the board for an episode.
  void start(Corner corner);
  /// Throws std::logic_error after the end of an episode.
  Outcome move(Action action);

  /// In the order of Channel, each row by row: [4, 10, 10], of 0 and 1.
  [[nodiscard]] std::array<std::uint8_t, kChannels * kCells> planes() const;
  /// For each cell, row by row, 1 + the last Channel in which there is something, or 0.
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
  Cell trail_{};  // where the ball was a step before
  int step_x_ = 1;
  int step_y_ = 1;
  int paddle_ = 4;
  bool in_bricks_ = false;  // a brick broke, and the ball has not left bricks since
  bool ended_ = true;
};

}  // namespace batchrpc_examples
