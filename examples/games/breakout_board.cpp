#include "games/breakout_board.hpp"

#include <algorithm>
#include <stdexcept>

namespace batchrpc_examples {
namespace {

constexpr int kLast = BreakoutBoard::kSize - 1;
constexpr int kFirstBrickRow = 1;
constexpr int kLastBrickRow = 3;
constexpr int kFirstPaddle = 4;

}  // namespace

void BreakoutBoard::set_up_bricks() {
  bricks_.fill(0);
  std::fill(bricks_.begin() + kFirstBrickRow * kSize, bricks_.begin() + (kLastBrickRow + 1) * kSize,
            std::uint8_t{1});
}

bool BreakoutBoard::is_cleared() const {
  return std::ranges::find(bricks_, std::uint8_t{1}) == bricks_.end();
}

void BreakoutBoard::start(Corner corner) {
  set_up_bricks();
  const bool left = corner == Corner::left;
  ball_ = {.x = left ? 0 : kLast, .y = 3};
  trail_ = ball_;
  step_x_ = left ? 1 : -1;
  step_y_ = 1;
  paddle_ = kFirstPaddle;
  in_bricks_ = false;
  ended_ = false;
}

BreakoutBoard::Outcome BreakoutBoard::move(Action action) {
  if (ended_) throw std::logic_error("this episode of Breakout has ended; call start() first");
  if (action == Action::left) paddle_ = std::max(0, paddle_ - 1);
  if (action == Action::right) paddle_ = std::min(kLast, paddle_ + 1);

  Outcome outcome;
  trail_ = ball_;
  Cell next{.x = ball_.x + step_x_, .y = ball_.y + step_y_};
  if (next.x < 0 || next.x > kLast) {
    next.x = std::clamp(next.x, 0, kLast);
    step_x_ = -step_x_;
  }
  bool meets_brick = false;
  if (next.y < 0) {
    next.y = 0;
    step_y_ = -step_y_;
  } else if (bricks_[next.index()] == 1) {
    // Only the first of several bricks in a row breaks; the ball flies through the others.
    meets_brick = true;
    if (!in_bricks_) {
      outcome.reward = 1;
      in_bricks_ = true;
      bricks_[next.index()] = 0;
      next.y = trail_.y;
      step_y_ = -step_y_;
    }
  } else if (next.y == kLast) {
    if (is_cleared()) set_up_bricks();
    if (trail_.x == paddle_) {
      step_y_ = -step_y_;
      next.y = trail_.y;
    } else if (next.x == paddle_) {  // at its edge: the ball returns the way it came
      step_x_ = -step_x_;
      step_y_ = -step_y_;
      next.y = trail_.y;
    } else {
      ended_ = true;
    }
  }
  if (!meets_brick) in_bricks_ = false;
  ball_ = next;
  outcome.ended = ended_;
  return outcome;
}

std::array<std::uint8_t, BreakoutBoard::kChannels * BreakoutBoard::kCells> BreakoutBoard::planes()
    const {
  std::array<std::uint8_t, kChannels * kCells> all{};
  all[paddle * kCells + Cell{paddle_, kLast}.index()] = 1;
  all[ball * kCells + ball_.index()] = 1;
  all[trail * kCells + trail_.index()] = 1;
  std::ranges::copy(bricks_, all.begin() + brick * kCells);
  return all;
}

std::array<std::uint8_t, BreakoutBoard::kCells> BreakoutBoard::topmost() const {
  std::array<std::uint8_t, kCells> cells{};
  cells[Cell{paddle_, kLast}.index()] = paddle + 1;
  cells[ball_.index()] = ball + 1;
  cells[trail_.index()] = trail + 1;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (bricks_[i] == 1) cells[i] = brick + 1;
  return cells;
}

}  // namespace batchrpc_examples
