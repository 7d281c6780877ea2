#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <batchrpc/metrics/node_metrics.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "env/counting_env.hpp"
#include "env/env_world.hpp"

namespace batchrpc::test {
namespace vector_env_test {

using namespace std::chrono_literals;
using Ids = std::vector<std::int64_t>;
using Flags = std::vector<std::uint8_t>;

TEST_CASE("a step of all environments gives their rows in the workers' order") {
  EnvWorld world(2);
  VectorEnv envs(*world.driver, world.options(2));
  CHECK(envs.size() == 4);
  CHECK(envs.spec().observation.shape == std::vector<std::int64_t>{4});

  EnvBatch batch = envs.reset();
  CHECK(batch.groups == 2);
  CHECK(batch.steps == 1);
  CHECK(batch.envs == 2);
  CHECK(batch.env_ids == Ids{0, 1, 2, 3});
  CHECK(seen(batch) ==
        std::vector<Seen>{{100, 1, 0, -1}, {101, 1, 0, -1}, {102, 1, 0, -1}, {103, 1, 0, -1}});
  CHECK(batch.started == Flags{1, 1, 1, 1});
  CHECK(batch.valid == Flags{1, 1, 1, 1});

  envs.step_async(batch, bytes_of({5, 6, 7, 8}));
  batch = envs.step_wait();
  CHECK(seen(batch) ==
        std::vector<Seen>{{100, 1, 1, 5}, {101, 1, 1, 6}, {102, 1, 1, 7}, {103, 1, 1, 8}});
  CHECK(batch.rewards == std::vector<float>{5, 6, 7, 8});
  CHECK(batch.started == Flags{0, 0, 0, 0});
  CHECK(batch.terminated == Flags{0, 0, 0, 0});
}

TEST_CASE("ends of episodes are told, terminated and truncated apart") {
  for (const bool truncates : {false, true}) {
    EnvWorld world(2, {.length = 2, .truncates = truncates});
    VectorEnv envs(*world.driver, world.options(1));
    EnvBatch batch = envs.reset();
    envs.step_async(batch, bytes_of({1, 2}));
    batch = envs.step_wait();
    CHECK(batch.episodes.empty());
    envs.step_async(batch, bytes_of({3, 4}));
    batch = envs.step_wait();
    CHECK(batch.terminated == (truncates ? Flags{0, 0} : Flags{1, 1}));
    CHECK(batch.truncated == (truncates ? Flags{1, 1} : Flags{0, 0}));
    REQUIRE(batch.episodes.size() == 2);
    CHECK(batch.episodes[1].env == 1);
    CHECK(batch.episodes[1].row == 1);
    CHECK(batch.episodes[1].total_reward == 6);
    CHECK(batch.episodes[1].length == 2);

    envs.step_async(batch, bytes_of({9, 9}));
    batch = envs.step_wait();
    CHECK(batch.started == Flags{1, 1});
    CHECK(batch.rewards == std::vector<float>{0, 0});
    CHECK(seen(batch) == std::vector<Seen>{{100, 2, 0, -1}, {101, 2, 0, -1}});
  }
}

TEST_CASE("with same_step the last observations of all workers come beside the batch") {
  EnvWorld world(3, {.length = 1});
  VectorEnv envs(*world.driver, world.options(2, 1, Autoreset::same_step));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 2, 3, 4, 5, 6}));
  batch = envs.step_wait();
  CHECK(batch.final_rows == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  CHECK(seen(batch.final_observations) == std::vector<Seen>{{100, 1, 1, 1},
                                                            {101, 1, 1, 2},
                                                            {102, 1, 1, 3},
                                                            {103, 1, 1, 4},
                                                            {104, 1, 1, 5},
                                                            {105, 1, 1, 6}});
  CHECK(seen(batch)[5] == Seen{105, 2, 0, -1});
}

TEST_CASE("environments are divided among lanes, in their order") {
  EnvWorld world(1, {}, 3);
  VectorEnv envs(*world.driver, world.options(6));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 2, 3, 4, 5, 6}));
  batch = envs.step_wait();
  CHECK(batch.rewards == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(seen(batch)[4] == Seen{104, 1, 1, 5});
}

TEST_CASE("several steps whose actions are known take one message") {
  EnvWorld world(2, {.length = 3});
  VectorEnv envs(*world.driver, world.options(2, 1, Autoreset::same_step));
  EnvBatch batch = envs.reset();
  const auto calls = [&] { return world.driver->metrics().made.calls; };
  const std::uint64_t before = calls();
  //                               worker 0: step 0, 1, 2, 3     worker 1
  envs.step_async(batch, bytes_of({1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18}), 4);
  batch = envs.step_wait();
  CHECK(calls() == before + 2);  // one of each worker
  CHECK(batch.steps == 4);
  CHECK(batch.rewards ==
        std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18});
  CHECK(seen(batch)[3] == Seen{101, 1, 2, 4});  // worker 0, step 1, environment 1
  CHECK(seen(batch)[6] == Seen{100, 2, 1, 7});  // the next episode
  CHECK(seen(batch)[15] == Seen{103, 2, 1, 18});
  CHECK(batch.final_rows == std::vector<std::size_t>{4, 5, 12, 13});
  CHECK(seen(batch.final_observations)[3] == Seen{103, 1, 3, 16});
  REQUIRE(batch.episodes.size() == 4);
  CHECK(batch.episodes[3].env == 3);
  CHECK(batch.episodes[3].total_reward == 12 + 14 + 16);

  // The next actions are of the last step's environments.
  envs.step_async(batch, bytes_of({1, 1, 1, 1}));
  batch = envs.step_wait();
  CHECK(batch.steps == 1);
  CHECK(seen(batch)[0] == Seen{100, 2, 2, 1});
}

TEST_CASE("with two buffers one half is stepped while the caller has the other") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1, 2));
  CHECK(envs.size() == 4);
  EnvBatch batch = envs.reset();
  CHECK(batch.env_ids == Ids{0, 1});
  envs.step_async(batch, bytes_of({1, 1}));
  batch = envs.step_wait();
  CHECK(batch.env_ids == Ids{2, 3});
  CHECK(seen(batch) == std::vector<Seen>{{102, 1, 0, -1}, {103, 1, 0, -1}});

  // 1 ms a step, of lanes that are never idle: 100 us to and fro and the caller's 500 us do not
  // count.
  const Duration begun = world.world.time();
  for (int i = 0; i < 20; ++i) {
    world.world.run_for(500us);
    envs.step_async(batch, bytes_of({2, 2}));
    batch = envs.step_wait();
  }
  CHECK(world.world.time() - begun <= 20ms + 1ms);
  CHECK(batch.env_ids == Ids{2, 3});
  CHECK(seen(batch)[1] == Seen{103, 1, 10, 2});
}

TEST_CASE("recv gives whichever workers are ready, and a slow one holds up nobody") {
  EnvWorld world(3, {.length = 100});
  world.times[1] = 10ms;
  VectorEnv envs(*world.driver, world.options(1));
  envs.reset_async();
  EnvBatch batch = envs.recv(3);
  CHECK(batch.env_ids == Ids{0, 2, 1});  // as they came
  std::vector<int> steps(3);
  for (int i = 0; i < 20; ++i) {
    envs.step_async(batch, bytes_of(all(batch, 1)));
    batch = envs.recv(2);
    for (const std::int64_t id : batch.env_ids)
      ++steps[static_cast<std::size_t>(id)];
  }
  CHECK(steps[0] >= 18);  // the slow one may have come in the place of another, twice
  CHECK(steps[2] >= 18);
  CHECK(steps[1] == 2);
}

TEST_CASE("recv's rows lie in the order in which they came, and belong to the environments named") {
  EnvWorld world(3, {.length = 100});
  world.times[0] = 3ms;
  world.times[1] = 2ms;
  VectorEnv envs(*world.driver, world.options(2));
  envs.reset_async();
  EnvBatch batch = envs.recv(3);
  CHECK(batch.env_ids == Ids{4, 5, 2, 3, 0, 1});
  CHECK(seen(batch)[0] == Seen{104, 1, 0, -1});
  CHECK(seen(batch)[5] == Seen{101, 1, 0, -1});
  envs.step_async(batch, bytes_of({44, 45, 42, 43, 40, 41}));
  batch = envs.recv(3);
  CHECK(batch.env_ids == Ids{4, 5, 2, 3, 0, 1});
  CHECK(batch.rewards == std::vector<float>{44, 45, 42, 43, 40, 41});
}

TEST_CASE("large observations are received where their batch has them") {
  constexpr std::size_t kPadding = 20000;  // 80 KB an environment
  EnvWorld world(2, {.length = 100, .padding = kPadding});
  VectorEnv envs(*world.driver, world.options(2));
  EnvBatch batch = envs.reset();
  const EnvBatch first = batch;
  for (int i = 1; i <= 3; ++i) {
    envs.step_async(batch, bytes_of(all(batch, i)));
    batch = envs.step_wait();
    REQUIRE(batch.observations.size() == 4 * (4 + kPadding) * sizeof(std::int32_t));
    CHECK(reinterpret_cast<std::uintptr_t>(batch.observations.data()) % alignof(std::int32_t) == 0);
    CHECK(seen(batch, kPadding)[3] == Seen{103, 1, i, i});
    CHECK(elements_of<std::int32_t>(batch.observations.span()).back() == 7);
  }
  CHECK(seen(first, kPadding)[3] == Seen{103, 1, 0, -1});  // what the caller has stays

  // The same in the order of arrival.
  world.times[0] = 5ms;
  envs.step_async(batch, bytes_of(all(batch, 4)));
  batch = envs.recv(2);
  envs.step_async(batch, bytes_of(all(batch, 5)));
  batch = envs.recv(2);
  CHECK(batch.env_ids == Ids{2, 3, 0, 1});
  CHECK(seen(batch, kPadding) ==
        std::vector<Seen>{{102, 1, 5, 5}, {103, 1, 5, 5}, {100, 1, 5, 5}, {101, 1, 5, 5}});
}

// Memory that they had been copied from would be kept for a while.
TEST_CASE("large observations take no memory but that of their batch") {
  EnvWorld world(2, {.length = 100, .padding = 20000});
  VectorEnv envs(*world.driver, world.options(2));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of(all(batch, 1, 16)), 16);
  batch = envs.step_wait();
  CHECK(batch.observations.size() > (std::size_t{1} << 22));
  CHECK(world.driver->metrics().payload_bytes_kept < batch.observations.size() / 4);
}

TEST_CASE("what the caller has stays as it is, whether recv or step_wait comes next") {
  for (const std::size_t padding : {std::size_t{0}, std::size_t{20000}}) {
    EnvWorld world(1, {.length = 1000, .padding = padding});
    VectorEnv envs(*world.driver, world.options(1, 2));
    envs.reset_async();
    std::vector<std::pair<EnvBatch, std::vector<Seen>>> kept;
    for (int i = 0; i < 10; ++i) {
      const EnvBatch one = envs.recv();
      const EnvBatch other = envs.step_wait();
      kept.emplace_back(one, seen(one, padding));
      kept.emplace_back(other, seen(other, padding));
      envs.step_async(one, bytes_of(all(one, i)));
      envs.step_async(other, bytes_of(all(other, i)));
    }
    for (const auto& [batch, as_it_was] : kept)
      REQUIRE(seen(batch, padding) == as_it_was);
  }
}

TEST_CASE("an environment that the next step resets may have any action") {
  EnvWorld world(2, {.length = 1});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(envs.step_async(batch, bytes_of({1, -1})), InvalidArgument);
    envs.step_async(batch, bytes_of({1, 1}));
    batch = envs.step_wait();
    REQUIRE(batch.terminated == Flags{1, 1});
    if (i == 0) {
      envs.step_async(batch, bytes_of({-1, 5000}));
    } else {
      CHECK_THROWS_AS(envs.step_async(batch, bytes_of({-1, -1, 1, 1}), 2), InvalidArgument);
      envs.step_async(batch, bytes_of({-1, 1, -1, 1}), 2);  // [G, n, k]
    }
    batch = envs.step_wait();
    CHECK(batch.started[0] == 1);
    CHECK(envs.workers()[0].losses + envs.workers()[1].losses == 0);
  }
}

TEST_CASE("batches of another VectorEnv, and of none, are refused") {
  EnvWorld world(2);
  VectorEnv envs(*world.driver, world.options(2));
  const EnvBatch batch = envs.reset();
  EnvWorld other_world(2);
  VectorEnv others(*other_world.driver, other_world.options(2));
  const EnvBatch of_others = others.reset();
  const std::vector<std::int64_t> chosen = all(batch, 1);
  const auto actions = bytes_of(chosen);
  CHECK_THROWS_WITH(envs.step_async(of_others, actions), Catch::Contains("another VectorEnv"));
  CHECK_THROWS_AS(envs.rollout_async(of_others, 1), InvalidArgument);
  CHECK_THROWS_AS(envs.step_async(EnvBatch{}, {}), InvalidArgument);
  EnvBatch changed = batch;
  changed.envs = 4;
  CHECK_THROWS_AS(envs.step_async(changed, actions), InvalidArgument);
  CHECK(envs.under_way() == 0);
}

TEST_CASE("some groups of a batch may be stepped, and others later") {
  EnvWorld world(3, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1));
  CHECK(envs.under_way() == 0);
  const EnvBatch first = envs.reset();
  CHECK(envs.under_way() == 0);
  const std::vector<EnvBatch::Group> two{first.sources[2], first.sources[0]};
  envs.step_async(two, bytes_of({7, 8}));
  CHECK(envs.under_way() == 2);
  EnvBatch batch = envs.recv(2);
  CHECK(batch.rewards ==
        (batch.env_ids == Ids{2, 0} ? std::vector<float>{7, 8} : std::vector<float>{8, 7}));
  CHECK(envs.under_way() == 0);
  envs.step_async(std::span(&first.sources[1], 1), bytes_of({9}));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{0, 1, 0});  // the others are with the caller
  CHECK(batch.rewards == std::vector<float>{0, 9, 0});
  envs.step_async(batch, bytes_of({-1, 1, -1}));  // and stay there
  CHECK(envs.under_way() == 1);
  CHECK(envs.step_wait().valid == Flags{0, 1, 0});
}

TEST_CASE("a reset begins all environments anew, with the seed or going on") {
  EnvWorld world(2);
  VectorEnv envs(*world.driver, world.options(1, 2));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 1}));  // under way when the reset comes
  batch = envs.reset();
  CHECK(seen(batch) == std::vector<Seen>{{100, 2, 0, -1}, {101, 2, 0, -1}});
  batch = envs.reset(7);
  CHECK(seen(batch) == std::vector<Seen>{{7, 1, 0, -1}, {8, 1, 0, -1}});
  envs.step_async(batch, bytes_of({1, 1}));
  CHECK(seen(envs.step_wait()) == std::vector<Seen>{{9, 1, 0, -1}, {10, 1, 0, -1}});
}

TEST_CASE("a batch that a newer one has replaced is not stepped again") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch first = envs.reset();
  envs.step_async(std::span(&first.sources[0], 1), bytes_of({1}));
  EnvBatch batch = envs.step_wait();
  CHECK_THROWS_WITH(envs.step_async(first, bytes_of({2, 2})), Catch::Contains("since that batch"));
  envs.step_async(std::span(&first.sources[1], 1), bytes_of({3}));  // the last that there is of it
  batch = envs.step_wait();
  CHECK(batch.rewards == std::vector<float>{0, 3});
  batch = envs.reset();
  CHECK_THROWS_AS(envs.step_async(first, bytes_of({2, 2})), InvalidArgument);
  envs.step_async(batch, bytes_of({4, 5}));
  CHECK(envs.step_wait().rewards == std::vector<float>{4, 5});
}

}  // namespace vector_env_test
}  // namespace batchrpc::test
