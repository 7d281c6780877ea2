#include "env/episodes.hpp"

#include <batchrpc/env/env_group.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "env/counting_env.hpp"

namespace batchrpc::env {
namespace episodes_test {

using test::Counting;
using test::Seen;

// Two environments, whose rows are looked at after each step.
struct TwoEnvs {
  explicit TwoEnvs(Autoreset autoreset, Counting how = {})
      : episodes(test::counting_envs(how)(2), autoreset) {}

  void begin(std::optional<std::uint64_t> seed) { episodes.begin(seed, rows()); }
  void step(std::int64_t first, std::int64_t second) {
    ends = {};
    episodes.step(test::bytes_of({first, second}), rows(), ends);
  }
  EpisodeRows rows() {
    return {.observations = {observations.mutable_data(), observations.size()},
            .rewards = rewards,
            .flags = flags,
            .first_row = 10};
  }
  [[nodiscard]] std::vector<Seen> seen() const { return test::seen(observations); }

  Episodes episodes;
  Bytes observations = Bytes::allocate(2 * 4 * sizeof(std::int32_t));
  std::vector<float> rewards = std::vector<float>(2);
  std::vector<std::uint8_t> flags = std::vector<std::uint8_t>(2);
  EpisodeEnds ends;
};

TEST_CASE("each environment of a group begins with a seed of its own") {
  TwoEnvs envs(Autoreset::next_step);
  envs.begin(40);
  CHECK(envs.seen() == std::vector<Seen>{{40, 1, 0, -1}, {41, 1, 0, -1}});
  CHECK(envs.flags == std::vector<std::uint8_t>{kStarted, kStarted});

  envs.begin(std::nullopt);  // goes on with what it has
  CHECK(envs.seen() == std::vector<Seen>{{40, 2, 0, -1}, {41, 2, 0, -1}});
}

TEST_CASE("with next_step an episode's last observation is seen, and the next step only resets") {
  TwoEnvs envs(Autoreset::next_step, {.length = 2});
  envs.begin(5);
  envs.step(1, 2);
  CHECK(envs.ends.episodes.empty());
  envs.step(3, 4);
  CHECK(envs.seen() == std::vector<Seen>{{5, 1, 2, 3}, {6, 1, 2, 4}});
  CHECK(envs.flags == std::vector<std::uint8_t>{kTerminated, kTerminated});
  CHECK(envs.rewards == std::vector<float>{3, 4});
  REQUIRE(envs.ends.episodes.size() == 2);
  CHECK(envs.ends.episodes[0].row == 10);
  CHECK(envs.ends.episodes[0].total_reward == 4);
  CHECK(envs.ends.episodes[1].row == 11);
  CHECK(envs.ends.episodes[1].total_reward == 6);
  CHECK(envs.ends.episodes[1].length == 2);
  CHECK(envs.ends.final_rows.empty());

  envs.step(8, 9);  // these actions are of nobody
  CHECK(envs.seen() == std::vector<Seen>{{5, 2, 0, -1}, {6, 2, 0, -1}});
  CHECK(envs.rewards == std::vector<float>{0, 0});
  CHECK(envs.flags == std::vector<std::uint8_t>{kStarted, kStarted});
  CHECK(envs.ends.episodes.empty());

  envs.step(1, 1);
  CHECK(envs.seen() == std::vector<Seen>{{5, 2, 1, 1}, {6, 2, 1, 1}});
  CHECK(envs.flags == std::vector<std::uint8_t>{0, 0});
}

TEST_CASE("with same_step the next episode's first observation is seen, and the last one kept") {
  TwoEnvs envs(Autoreset::same_step, {.length = 2, .truncates = true});
  envs.begin(5);
  envs.step(1, 2);
  envs.step(3, 4);
  CHECK(envs.seen() == std::vector<Seen>{{5, 2, 0, -1}, {6, 2, 0, -1}});
  CHECK(envs.flags == std::vector<std::uint8_t>{kTruncated, kTruncated});
  CHECK(envs.rewards == std::vector<float>{3, 4});
  CHECK(envs.ends.final_rows == std::vector<std::uint32_t>{10, 11});
  CHECK(test::seen(Bytes::copy(envs.ends.final_observations)) ==
        std::vector<Seen>{{5, 1, 2, 3}, {6, 1, 2, 4}});
  REQUIRE(envs.ends.episodes.size() == 2);
  CHECK(envs.ends.episodes[0].total_reward == 4);

  envs.step(7, 7);
  CHECK(envs.seen() == std::vector<Seen>{{5, 2, 1, 7}, {6, 2, 1, 7}});
}

TEST_CASE("a group of environments that differ is refused") {
  int made = 0;
  const EnvGroupFactory factory = group_of([&] {
    return std::make_unique<test::CountingEnv>(
        Counting{.padding = static_cast<std::size_t>(made++)});
  });
  CHECK_THROWS_WITH(factory(2), Catch::Contains("int32 [4]") && Catch::Contains("int32 [5]"));
  CHECK_THROWS_AS(factory(0), InvalidArgument);
  CHECK_THROWS_AS(group_of([] { return nullptr; })(1), InvalidArgument);
}

}  // namespace episodes_test
}  // namespace batchrpc::env
