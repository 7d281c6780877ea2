#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "games/breakout_board.hpp"

namespace batchrpc_examples {

/// BreakoutBoard with MinAtar's randomness: the corner that the ball starts from, and sticky
/// actions, which repeat the previous action in a tenth of the steps. The previous action carries
/// over the end of an episode, as in MinAtar.
class StickyBreakout {
 public:
  static constexpr double kStickiness = 0.1;

  /// Begins an episode. With a seed, everything is as in a new game with that seed. The numbers
  /// differ from those of NumPy's generator.
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
