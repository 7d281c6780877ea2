// Workers that die, come back, throw, and are slow; and callers who ask for what cannot be.
#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/constant_policy.hpp"
#include "env/counting_env.hpp"
#include "env/env_world.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::test {
namespace vector_env_failures_test {

using namespace std::chrono_literals;
using Ids = std::vector<std::int64_t>;
using Flags = std::vector<std::uint8_t>;

TEST_CASE("a worker that dies takes its rows along, and the others go on") {
  EnvWorld world(3, {.length = 100});
  VectorEnv envs(*world.driver, world.options(2));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of(all(batch, 1)));
  world.world.kill("w1");
  batch = envs.step_wait();
  CHECK(batch.groups == 3);
  CHECK(batch.env_ids == Ids{0, 1, 2, 3, 4, 5});
  CHECK(batch.valid == Flags{1, 1, 0, 0, 1, 1});
  CHECK(batch.rewards == std::vector<float>{1, 1, 0, 0, 1, 1});
  CHECK(seen(batch)[2] == Seen{0, 0, 0, 0});
  CHECK(seen(batch)[4] == Seen{104, 1, 1, 1});

  const auto states = envs.workers();
  CHECK(states[0].live);
  CHECK_FALSE(states[1].live);
  CHECK(states[1].losses == 1);
  CHECK_THAT(states[1].last_loss, Catch::StartsWith("w1 is lost"));

  for (int i = 0; i < 3; ++i) {  // actions of rows that are not valid are nobody's
    std::vector<std::int64_t> actions = all(batch, 2);
    actions[2] = -1;
    envs.step_async(batch, bytes_of(actions));
    batch = envs.step_wait();
  }
  CHECK(batch.valid == Flags{1, 1, 0, 0, 1, 1});
  CHECK(seen(batch)[5] == Seen{105, 1, 4, 2});
}

TEST_CASE("recv leaves out a worker that has died") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  world.world.kill("w0");
  envs.step_async(batch, bytes_of({1, 1}));
  batch = envs.recv(2);
  CHECK(batch.env_ids == Ids{1});
  CHECK(batch.valid == Flags{1});
}

TEST_CASE("a replacement of a worker takes its place, with fresh environments") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1, 2));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 1}));
  world.world.kill("w0");
  int without = 0;
  int with = 0;
  for (int i = 0; i < 4000 && with < 4; ++i) {
    if (i == 20) world.start(0);
    batch = envs.step_wait();
    if (batch.valid[0] == 0) {
      ++without;
      CHECK(with == 0);
    } else if (++with <= 2) {  // of each buffer
      CHECK(batch.started == Flags{1, 0});
      const auto first = static_cast<std::int32_t>(100 + 4 + batch.env_ids[0]);
      CHECK(seen(batch)[0] == Seen{first, 1, 0, -1});
    } else {
      CHECK(batch.started == Flags{0, 0});
      CHECK(seen(batch)[0][2] == 1);
    }
    envs.step_async(batch, bytes_of(all(batch, 1)));
  }
  CHECK(without >= 20);
  CHECK(with == 4);
  CHECK(envs.workers()[0].live);
  CHECK(envs.workers()[0].losses == 1);
}

TEST_CASE("in recv mode, too, a replacement joins while the others go on") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  envs.reset_async();
  world.world.kill("w1");
  bool back = false;
  for (int i = 0; i < 400 && !back; ++i) {
    if (i == 20) world.start(1);
    const EnvBatch batch = envs.recv();
    back = std::ranges::find(batch.env_ids, 1) != batch.env_ids.end();
    envs.step_async(batch, bytes_of(all(batch, 1)));
  }
  CHECK(back);
}

TEST_CASE("when all that was under way is lost, recv gives nothing, and what is held goes on") {
  EnvWorld world(2, {.length = 1000}, 1, std::make_shared<ConstantPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch first = envs.reset();
  envs.step_async(std::span(&first.sources[0], 1), bytes_of({1}));
  CHECK(envs.under_way() == 1);
  world.world.kill("w0");
  EnvBatch batch = envs.recv();
  CHECK(batch.groups == 0);
  CHECK(batch.rows() == 0);
  CHECK(batch.observations.empty());
  CHECK(envs.under_way() == 0);
  envs.step_async(batch, {});  // as a loop does with what it gets
  envs.rollout_async(batch, 1);
  CHECK(envs.under_way() == 0);
  CHECK_THROWS_AS(envs.recv(), InvalidArgument);
  envs.step_async(std::span(&first.sources[1], 1), bytes_of({2}));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{0, 1});
}

TEST_CASE("when all workers are lost, that is said, with the reasons") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 1}));
  world.world.kill("w0");
  world.world.kill("w1");
  CHECK_THROWS_AS(envs.step_wait(), PeerLost);
  CHECK_THROWS_WITH(envs.recv(),
                    Catch::Contains("w0 is lost (") && Catch::Contains("w1 is lost ("));
  CHECK_THROWS_AS(envs.reset(), PeerLost);

  world.start(1);  // and then it goes on
  CHECK(envs.wait_for_workers(1, 10s));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{0, 1});
}

TEST_CASE("a worker that does not answer in time is lost, and may come back") {
  EnvWorld world(2, {.length = 100});
  VectorEnvOptions options = world.options(1);
  options.step_timeout = 50ms;
  VectorEnv envs(*world.driver, options);
  EnvBatch batch = envs.reset();
  world.times[1] = 200ms;
  envs.step_async(batch, bytes_of({1, 1}));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{1, 0});
  CHECK_THAT(envs.workers()[1].last_loss, Catch::Contains("VectorEnvOptions::step_timeout"));
  world.times.erase(1);
  for (int i = 0; i < 400 && batch.valid[1] == 0; ++i) {
    envs.step_async(batch, bytes_of({1, 1}));
    batch = envs.step_wait();
  }
  CHECK(batch.valid == Flags{1, 1});
}

TEST_CASE("a worker that is too slow loses the steps of both buffers, and comes back with both") {
  EnvWorld world(2, {.length = 1000});
  VectorEnvOptions options = world.options(1, 2);
  options.step_timeout = 50ms;
  VectorEnv envs(*world.driver, options);
  EnvBatch batch = envs.reset();
  world.times[1] = 200ms;
  Flags lost(2);
  for (int i = 0; i < 4; ++i) {
    envs.step_async(batch, bytes_of({1, 1}));
    batch = envs.step_wait();
    if (batch.valid[1] == 0) lost[batch.sources[0].buffer] = 1;
  }
  CHECK(lost == Flags{1, 1});
  CHECK(envs.workers()[1].losses == 1);
  world.times.erase(1);
  REQUIRE(envs.wait_for_workers(2, 10s));
  Flags back(2);
  for (int i = 0; i < 4; ++i) {
    envs.step_async(batch, bytes_of({1, 1}));
    batch = envs.step_wait();
    if (batch.valid[1] != 0) back[batch.sources[0].buffer] = 1;
  }
  CHECK(back == Flags{1, 1});
}

TEST_CASE("no more steps are asked for than the answer's frame has room for") {
  EnvWorld world(1, {.length = 1});
  Node driver(world.world.options("small", {.limits = {.max_frame_bytes = 65536}}));
  VectorEnv envs(driver, world.options(4, 1, Autoreset::same_step));
  EnvBatch batch = envs.reset();
  constexpr std::size_t kMost = (65536 - 4096) / 4 / 33;
  CHECK_THROWS_WITH(envs.step_async(batch, bytes_of(all(batch, 1, kMost + 1)), kMost + 1),
                    Catch::Contains("one message can carry 1 to " + std::to_string(kMost)));
  envs.step_async(batch, bytes_of(all(batch, 1, kMost)), kMost);
  batch = envs.step_wait();
  CHECK(batch.episodes.size() == batch.rows());  // as large as it can be
  CHECK(batch.final_rows.size() == batch.rows());

  const VectorEnvOptions many = world.options(3000);
  CHECK_THROWS_WITH(VectorEnv(driver, many), Catch::Contains("more than one message can carry"));
}

TEST_CASE("an environment that throws ends its worker for good, and its words are told") {
  // An error of batchrpc's, as of a call that it makes, is no less its own.
  EnvWorld world(2, {.length = 100, .throws_at = 13, .throws_not_found = GENERATE(false, true)});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 13}));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{1, 0});
  CHECK_THAT(envs.workers()[1].last_loss,
             Catch::StartsWith("w1 is lost: ") && Catch::Contains("does not like that"));
  CHECK_FALSE(envs.workers()[1].opening);
  world.world.run_for(5s);
  CHECK_FALSE(envs.workers()[1].live);
}

TEST_CASE("actions that are not allowed are refused before anything is sent") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(2));
  const EnvBatch batch = envs.reset();
  CHECK_THROWS_WITH(envs.step_async(batch, bytes_of({1, 2, 1001, 0})),
                    Catch::Contains("action 2 of 4 is 1001") && Catch::Contains("0 to 1000"));
  CHECK_THROWS_AS(envs.step_async(batch, bytes_of({1, -1, 1, 1})), InvalidArgument);
  CHECK_THROWS_WITH(envs.step_async(batch, bytes_of({1, 2, 3})),
                    Catch::Contains("need 32 bytes") && Catch::Contains("got 24"));
  CHECK_THROWS_AS(envs.step_async(batch, std::span<const std::byte>()), InvalidArgument);
  CHECK_THROWS_AS(envs.step_async(batch, bytes_of({1, 2, 3, 4}), 0), InvalidArgument);
  CHECK_THROWS_WITH(envs.rollout_async(batch, 100'000'000), Catch::Contains("1 to 1016738"));
  envs.step_async(batch, bytes_of({1, 2, 3, 4}));
  CHECK(envs.step_wait().rewards == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("stepping twice, waiting for nothing, and rollouts without a policy are refused") {
  EnvWorld world(1, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1));
  CHECK_THROWS_WITH(envs.step_wait(), Catch::Contains("no step is in flight"));
  CHECK_THROWS_WITH(envs.recv(), Catch::Contains("no step is in flight"));
  const EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1}));
  CHECK_THROWS_WITH(envs.step_async(batch, bytes_of({1})),
                    Catch::Contains("already being stepped"));
  const EnvBatch next = envs.step_wait();
  CHECK_THROWS_AS(envs.step_wait(), InvalidArgument);
  CHECK_THROWS_WITH(envs.rollout_async(next, 2), Catch::Contains("workers have no policy"));
  envs.step_async(next, bytes_of({1}));
  CHECK(envs.step_wait().valid == Flags{1});
}

TEST_CASE("options that cannot work are refused, in words that say which") {
  EnvWorld world(2);
  const auto refused = [&](const VectorEnvOptions& options) -> std::string {
    try {
      const VectorEnv envs(*world.driver, options);
      return "";
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
  VectorEnvOptions options = world.options(1);
  options.workers.clear();
  CHECK_THAT(refused(options), Catch::Contains("workers is empty"));
  options = world.options(1);
  options.workers[1] = "w0";
  CHECK_THAT(refused(options), Catch::Contains("named twice"));
  CHECK_THAT(refused(world.options(0)), Catch::Contains("envs_per_worker is 0"));
  CHECK_THAT(refused(world.options(1, 0)), Catch::Contains("buffers is 0"));
  CHECK_THAT(refused(world.options(1, 17)), Catch::Contains("buffers is 17"));
  CHECK_THAT(refused(world.options(65537)), Catch::Contains("max_envs"));
  options = world.options(1);
  options.step_timeout = 0s;
  CHECK_THAT(refused(options), Catch::Contains("step_timeout"));
}

TEST_CASE("environments that do not divide among a worker's lanes are refused") {
  EnvWorld world(1, {}, 4);
  CHECK_THROWS_WITH((VectorEnv(*world.driver, world.options(6))),
                    Catch::Contains("6 environments cannot be divided evenly among 4 lanes"));
}

TEST_CASE("workers whose environments differ are refused, and both are named", "[threads]") {
  EnvWorld world(1);
  Node other(world.world.options("other"));
  const EnvWorker worker(other, counting_envs({.padding = 1}));
  VectorEnvOptions options = world.options(1);
  options.workers.emplace_back("other");
  CHECK_THROWS_WITH(VectorEnv(*world.driver, options),
                    Catch::Contains("int32 [4]") && Catch::Contains("int32 [5]"));
}

TEST_CASE("a worker that is not there in time is named, one that comes late is waited for") {
  EnvWorld world(1);
  Node late(world.world.options("late"));
  VectorEnvOptions options = world.options(1);
  options.workers.emplace_back("late");
  options.open_timeout = 2s;
  CHECK_THROWS_AS(VectorEnv(*world.driver, options), TimedOut);
  CHECK_THROWS_WITH(VectorEnv(*world.driver, options),
                    Catch::Contains("worker late") && Catch::Contains("envs"));
  std::unique_ptr<EnvWorker> worker;
  world.world.after(1s, [&] {
    worker = std::make_unique<EnvWorker>(
        late, counting_envs(),
        EnvWorkerOptions{.lanes = timed_lanes(1, world.world.loop(),
                                              [](std::size_t /*lane*/) { return Duration(1ms); })});
  });
  VectorEnv envs(*world.driver, options);
  CHECK(envs.reset().valid == Flags{1, 1});
}

TEST_CASE("a second driver takes a worker over, and the first one is told so") {
  EnvWorld world(1, {.length = 100});
  VectorEnv first(*world.driver, world.options(1));
  const EnvBatch batch = first.reset();
  Node other(world.world.options("other"));
  VectorEnv second(other, world.options(1));
  CHECK(seen(second.reset()) == std::vector<Seen>{{100, 1, 0, -1}});
  first.step_async(batch, bytes_of({1}));
  CHECK_THROWS_WITH(first.step_wait(), Catch::Contains("opened again"));
}

}  // namespace vector_env_failures_test
}  // namespace batchrpc::test
