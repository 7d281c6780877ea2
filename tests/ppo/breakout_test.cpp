#include "games/breakout_board.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "games/minatar_breakout.hpp"
#include "games/sticky_breakout.hpp"
#include "recorded_rows.hpp"

namespace batchrpc_examples {
namespace breakout_test {

using Action = BreakoutBoard::Action;
using Corner = BreakoutBoard::Corner;

struct RecordedStep {
  bool is_reset = false;
  int action = 0;
  bool sticky = false;
  int corner = 0;
  int reward = 0;
  bool terminated = false;
  std::string cells;  // paddle, ball, trail and bricks
};

// data/minatar_breakout_trajectories.csv, by record_minatar_trajectories.py from the package
// minatar.
std::vector<RecordedStep> recorded() {
  std::vector<RecordedStep> steps;
  for (const std::vector<std::string>& fields :
       batchrpc::test::recorded_rows("tests/ppo/data/minatar_breakout_trajectories.csv", 10)) {
    RecordedStep step;
    step.is_reset = fields[1].empty();
    if (step.is_reset) {
      step.corner = std::stoi(fields[3]);
    } else {
      step.action = std::stoi(fields[1]);
      step.sticky = fields[2] == "1";
    }
    step.reward = std::stoi(fields[4]);
    step.terminated = fields[5] == "1";
    step.cells = fields[6] + "," + fields[7] + "," + fields[8] + "," + fields[9];
    steps.push_back(step);
  }
  return steps;
}

// What stands in a line of the record, read off the planes of an observation.
std::string cells_of(const BreakoutBoard& board) {
  const auto planes = board.planes();
  std::ostringstream text;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t cell = 0; cell < 100; ++cell)
      if (planes[channel * 100 + cell] == 1) text << cell << ',';
  }
  unsigned bricks = 0;
  for (std::size_t cell = 10; cell < 40; ++cell)
    bricks = bricks * 2 + planes[300 + cell];
  text << std::hex << bricks;
  return text.str();
}

TEST_CASE("Breakout plays the games that MinAtar has played, step by step") {
  BreakoutBoard board;
  int episodes = 0;
  int steps = 0;
  int returns = 0;
  Action last = Action::none;
  for (const RecordedStep& step : recorded()) {
    if (step.is_reset) {
      board.start(step.corner == 0 ? Corner::left : Corner::right);
      ++episodes;
    } else {
      if (!step.sticky) last = static_cast<Action>(step.action);
      const BreakoutBoard::Outcome outcome = board.move(last);
      ++steps;
      returns += outcome.reward;
      INFO("step " << steps << " of the record");
      REQUIRE(outcome.reward == step.reward);
      REQUIRE(outcome.ended == step.terminated);
    }
    INFO("after step " << steps << " of the record");
    REQUIRE(cells_of(board) == step.cells);
  }
  CHECK(episodes == 70);
  CHECK(steps == 4546);
  CHECK(returns == 362);
}

TEST_CASE("Breakout wants a start after an end") {
  BreakoutBoard board;
  CHECK_THROWS_AS(board.move(Action::none), std::logic_error);
  board.start(Corner::left);
  for (int i = 0; i < 5; ++i)
    REQUIRE_FALSE(board.move(Action::none).ended);
  CHECK(board.move(Action::none).ended);
  CHECK_THROWS_WITH(board.move(Action::none), Catch::Contains("start()"));
}

TEST_CASE("A cell of Breakout shows the last of what is in it") {
  BreakoutBoard board;
  board.start(Corner::right);
  const auto cells = board.topmost();
  CHECK(cells[39] == 4);  // the ball and its trail behind a brick
  CHECK(cells[94] == 1);  // the paddle
  CHECK(cells[93] == 0);
  (void)board.move(Action::none);
  CHECK(board.topmost()[48] == 2);
}

TEST_CASE("Sticky actions repeat the one before in a tenth of the steps") {
  StickyBreakout game;
  game.reset(7);
  int steps = 0;
  int repeated = 0;
  // After two steps to the left one to the right brings the paddle back, unless it is a third.
  const auto paddle_is_at = [&](std::size_t x) { return game.board().planes()[90 + x] == 1; };
  while (steps < 20'000) {
    game.reset(std::nullopt);
    (void)game.step(Action::left);
    (void)game.step(Action::left);
    const bool went = paddle_is_at(2);
    (void)game.step(Action::right);
    if (!went) continue;  // the first action was one from before
    ++steps;
    repeated += paddle_is_at(1) ? 1 : 0;
    REQUIRE((paddle_is_at(1) || paddle_is_at(3)));
  }
  CHECK(repeated > 1850);
  CHECK(repeated < 2150);
}

TEST_CASE("Both corners are as likely") {
  StickyBreakout game;
  game.reset(3);
  int left = 0;
  for (int i = 0; i < 1000; ++i) {
    game.reset(std::nullopt);
    left += game.board().planes()[100 + 30];
  }
  CHECK(left > 450);
  CHECK(left < 550);
}

}  // namespace breakout_test
}  // namespace batchrpc_examples
