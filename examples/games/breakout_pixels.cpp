#include "games/breakout_pixels.hpp"

#include <algorithm>

#include "games/minatar_breakout.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;

namespace {

constexpr std::size_t kCell = 8;
constexpr std::size_t kBorder = 2;
constexpr int kGreyStep = 60;

}  // namespace

BreakoutPixels::BreakoutPixels()
    : spec_{.observation = {rpc::ElementType::uint8, {kFrames, kScreen, kScreen}}, .actions = 3} {}

void BreakoutPixels::draw(Screen& screen) const {
  const auto cells = game_.board().topmost();
  constexpr std::size_t size = BreakoutBoard::kSize;
  for (std::size_t y = 0; y < size; ++y) {
    const auto row = screen.begin() + static_cast<std::ptrdiff_t>((kBorder + y * kCell) * kScreen);
    for (std::size_t x = 0; x < size; ++x) {
      std::fill_n(row + static_cast<std::ptrdiff_t>(kBorder + x * kCell), kCell,
                  static_cast<std::uint8_t>(cells[y * size + x] * kGreyStep));
    }
    for (std::size_t line = 1; line < kCell; ++line)
      std::copy_n(row, kScreen, row + static_cast<std::ptrdiff_t>(line * kScreen));
  }
}

void BreakoutPixels::write(std::span<std::byte> observation) const {
  auto out = rpc::elements_of<std::uint8_t>(observation).begin();
  for (std::size_t i = 1; i <= screens_.size(); ++i)
    out = std::ranges::copy(screens_[(newest_ + i) % screens_.size()], out).out;
}

void BreakoutPixels::reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) {
  game_.reset(seed);
  newest_ = 0;
  draw(screens_[0]);
  std::fill(screens_.begin() + 1, screens_.end(), screens_[0]);
  write(observation);
}

rpc::EnvStep BreakoutPixels::step(std::span<const std::byte> action,
                                  std::span<std::byte> observation) {
  const BreakoutBoard::Outcome outcome = game_.step(breakout_action(action));
  newest_ = (newest_ + 1) % screens_.size();
  draw(screens_[newest_]);
  write(observation);
  return {.reward = static_cast<float>(outcome.reward), .terminated = outcome.ended};
}

}  // namespace batchrpc_examples
