#include "games/sticky_breakout.hpp"

namespace batchrpc_examples {

double StickyBreakout::uniform() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

void StickyBreakout::reset(std::optional<std::uint64_t> seed) {
  if (seed) {
    random_.seed(*seed);
    last_ = BreakoutBoard::Action::none;
  }
  board_.start(uniform() < 0.5 ? BreakoutBoard::Corner::left : BreakoutBoard::Corner::right);
}

BreakoutBoard::Outcome StickyBreakout::step(BreakoutBoard::Action action) {
  if (uniform() >= kStickiness) last_ = action;
  return board_.move(last_);
}

}  // namespace batchrpc_examples
