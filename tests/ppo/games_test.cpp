#include "games/games.hpp"

#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace batchrpc_examples {
namespace games_test {

namespace rpc = batchrpc;

// An environment with room for its observation.
struct Played {
  explicit Played(const std::string& name)
      : env(make_env(name)), observation(env->spec().observation.bytes()) {}

  rpc::EnvStep step(std::int64_t action) {
    return env->step(std::as_bytes(std::span(&action, 1)), observation);
  }
  void reset(std::optional<std::uint64_t> seed) { env->reset(seed, observation); }
  [[nodiscard]] std::uint8_t byte(std::size_t index) const {
    return std::to_integer<std::uint8_t>(observation[index]);
  }

  std::unique_ptr<rpc::Env> env;
  std::vector<std::byte> observation;
};

TEST_CASE("Games are made by name, and an unknown name is answered by those that there are") {
  CHECK(env_names() == std::vector<std::string>{"cartpole", "minatar-breakout", "pixels"});
  for (const std::string& name : env_names())
    CHECK_NOTHROW(require_usable(make_env(name)->spec()));
  CHECK_THROWS_AS(make_env("pong"), rpc::InvalidArgument);
  CHECK_THROWS_WITH(make_env("pong"),
                    Catch::Contains("'pong'; known are cartpole, minatar-breakout, pixels"));
}

TEST_CASE("Games say what they take and give") {
  CHECK(to_string(make_env("cartpole")->spec()) == "observation float32 [4], action int64 [] of 2");
  CHECK(to_string(make_env("minatar-breakout")->spec()).find("[4, 10, 10]") != std::string::npos);
  CHECK(make_env("minatar-breakout")->spec().observation.type == rpc::ElementType::boolean);
  CHECK(make_env("pixels")->spec().observation ==
        rpc::ArraySpec{rpc::ElementType::uint8, {4, 84, 84}});
  CHECK(make_env("pixels")->spec().actions == 3);
}

TEST_CASE("Games go alike after the same seed, and otherwise after another") {
  const std::string name = GENERATE("cartpole", "minatar-breakout", "pixels");
  const auto history = [&](std::uint64_t seed) {
    Played game(name);
    game.reset(1234);
    (void)game.step(1);
    game.reset(seed);
    std::string all;
    for (std::int64_t i = 0; i < 200; ++i) {
      if (game.step(i % 2).ended()) game.reset(std::nullopt);
      all.append(reinterpret_cast<const char*>(game.observation.data()), game.observation.size());
    }
    return all;
  };
  CHECK((history(5) == history(5)));  // in parentheses: not to be printed
  CHECK((history(5) != history(6)));
}

TEST_CASE("CartPole is truncated after 500 steps, and else terminated") {
  Played game("cartpole");
  game.reset(1);
  rpc::EnvStep step;
  int steps = 0;
  for (; !step.ended(); ++steps) {
    const auto state = rpc::elements_of<float>(std::span(game.observation));
    step = game.step(state[2] + 0.25F * state[3] + 0.02F * state[0] + 0.05F * state[1] > 0);
    CHECK(step.reward == 1);
  }
  CHECK(steps == 500);
  CHECK(step.truncated);
  CHECK_FALSE(step.terminated);
  game.reset(1);
  for (steps = 0, step = {}; !step.ended(); ++steps)
    step = game.step(0);
  CHECK(steps < 15);
  CHECK(step.terminated);
  CHECK_FALSE(step.truncated);
}

TEST_CASE("Breakout's channels come first") {
  Played game("minatar-breakout");
  game.reset(1);
  CHECK(game.byte(94) == 1);                      // the paddle, row 9, column 4
  CHECK(game.byte(130) + game.byte(139) == 1);    // the ball, in a corner of row 3
  CHECK(game.byte(230) + game.byte(239) == 1);    // its trail
  for (std::size_t cell = 0; cell < 100; ++cell)  // the bricks, rows 1 to 3
    CHECK(game.byte(300 + cell) == (cell >= 10 && cell < 40 ? 1 : 0));
}

TEST_CASE("The pixels are a stack of four screens, the newest last") {
  Played game("pixels");
  constexpr std::size_t kScreen = 84 * 84;
  const auto pixel = [&](std::size_t frame, std::size_t y, std::size_t x) {
    return int{game.byte(frame * kScreen + y * 84 + x)};
  };
  game.reset(1);
  for (std::size_t frame = 0; frame < 4; ++frame) {
    CHECK(pixel(frame, 0, 0) == 0);
    CHECK(pixel(frame, 83, 83) == 0);
    CHECK(pixel(frame, 2 + 8, 2) == 240);          // the first brick, from its first pixel
    CHECK(pixel(frame, 2 + 8 + 7, 2 + 7) == 240);  // to its last
    CHECK(pixel(frame, 2 + 7, 2) == 0);
    CHECK(pixel(frame, 2 + 9 * 8, 2 + 4 * 8) == 60);  // the paddle
    CHECK(pixel(frame, 2 + 9 * 8, 2 + 4 * 8 - 1) == 0);
  }
  std::vector<std::vector<std::byte>> newest;
  for (int i = 0; i < 4; ++i) {
    (void)game.step(1);
    newest.emplace_back(game.observation.end() - kScreen, game.observation.end());
  }
  for (std::size_t frame = 0; frame < 4; ++frame) {
    const auto begin = game.observation.begin() + static_cast<std::ptrdiff_t>(frame * kScreen);
    CHECK(std::equal(newest[frame].begin(), newest[frame].end(), begin));
  }
  CHECK((newest[0] != newest[1]));
}

TEST_CASE("Games refuse actions that they do not know") {
  for (const std::string& name : env_names()) {
    Played game(name);
    game.reset(1);
    CHECK_THROWS_WITH(game.step(3), Catch::Contains("not 3"));
    CHECK_THROWS_WITH(game.step(-1), Catch::Contains("not -1"));
  }
}

}  // namespace games_test
}  // namespace batchrpc_examples
