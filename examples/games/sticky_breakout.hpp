#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "games/breakout_board.hpp"

namespace batchrpc_examples {

/// BreakoutBoard with what is random in MinAtar: the corner that the ball starts from, and sticky
/// actions, by which in a tenth of the steps the action before is taken again. The action before
/// stays over the end of an episode, as it does there.
class StickyBreakout {
 public:
  static constexpr double kStickiness = 0.1;

  /// Begins an episode. With a seed all is as in a new game with that seed; its draws are not those
  /// of NumPy's generator.
  void reset(std::optional<std::uint64_t> seed);
  BreakoutBoard::Outcome step(BreakoutBoard::Action action);

  [[nodiscard]] const BreakoutBoard& board() const { return board_; }

 private:
  [[nodiscard]] double uniform();  // in [0, 1), the same with every standard library

  std::mt19937_64 random_;
  BreakoutBoard board_;
  BreakoutBoard::Action last_ = BreakoutBoard::Action::none;
};

}  // namespace batchrpc_examples
