// Workers that come back, and what they were lost by.
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "env/constant_policy.hpp"
#include "env/counting_env.hpp"
#include "env/env_world.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::test {
namespace worker_return_test {

using namespace std::chrono_literals;
using Flags = std::vector<std::uint8_t>;

// Steps what there is until all rows are valid.
EnvBatch until_all_valid(VectorEnv& envs, EnvBatch batch) {
  for (int i = 0; i < 5000; ++i) {
    envs.step_async(batch, bytes_of(all(batch, 1)));
    batch = envs.step_wait();
    if (batch.valid == Flags(batch.rows(), 1)) return batch;
  }
  return batch;
}

TEST_CASE("a worker that is restarted while nothing is under way is back before the next step") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  world.world.kill("w0");
  world.start(0);
  world.world.run_for(5s);
  CHECK(envs.workers()[0].live);
  CHECK(envs.workers()[0].losses == 1);
  envs.step_async(batch, bytes_of({1, 1}));  // of which the first one is gone
  const EnvBatch next = envs.step_wait();
  CHECK(next.valid == Flags{1, 1});
  CHECK(next.started == Flags{1, 0});
}

TEST_CASE("an EnvWorker that another one on its node replaces is opened again") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  world.hosts[1]->serve(world, 1);
  envs.step_async(batch, bytes_of({1, 1}));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{1, 1});
  CHECK(batch.started == Flags{0, 1});
  CHECK(envs.workers()[1].losses == 1);
}

TEST_CASE("a process with other environments than the one before it is told so") {
  EnvWorld world(1, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  (void)envs.reset();
  world.world.kill("w0");
  world.set({.length = 1000, .padding = 1});
  world.start(0);
  CHECK_FALSE(envs.wait_for_workers(1, 1h));
  CHECK_THAT(envs.workers()[0].last_loss,
             Catch::Contains("differ from those of the previous process ("));
}

TEST_CASE("a process with other environments is refused, and the next one of its name is not") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  world.world.kill("w1");
  world.set({.length = 1000, .padding = 1});
  world.start(1);
  CHECK_FALSE(envs.wait_for_workers(2, 1h));
  CHECK_FALSE(envs.workers()[1].opening);
  CHECK(envs.workers()[1].losses == 1);
  CHECK(envs.workers()[1].refusals == 1);
  CHECK_THAT(envs.workers()[1].last_loss,
             Catch::StartsWith("w1 ") && Catch::Contains("differ from those of w0"));
  world.world.run_for(1h);
  CHECK_FALSE(envs.workers()[1].opening);
  world.world.kill("w1");
  world.set({.length = 1000});
  world.start(1);
  world.world.run_for(5s);
  REQUIRE(envs.workers()[1].live);
  CHECK(until_all_valid(envs, batch).valid == Flags{1, 1});
}

TEST_CASE("a worker whose environment threw is opened again when it is replaced") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1, 1000}));
  batch = envs.step_wait();
  CHECK(batch.valid == Flags{1, 0});
  world.world.run_for(1h);
  CHECK_FALSE(envs.workers()[1].opening);
  world.world.kill("w1");
  world.start(1);
  world.world.run_for(5s);
  CHECK(envs.workers()[1].live);
}

TEST_CASE("a batch of environments that are gone steps nothing, though its worker is back") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1, 2));
  const EnvBatch first = envs.reset();
  EnvBatch second = envs.step_wait();
  envs.step_async(second, bytes_of({1, 1}));
  world.world.kill("w0");
  second = envs.step_wait();
  world.start(0);
  REQUIRE(envs.wait_for_workers(2, 10s));
  CHECK(envs.under_way() == 2);  // first observations of both buffers
  envs.step_async(first, bytes_of({7, 7}));
  std::vector<std::uint8_t> started(envs.size());
  std::vector<float> rewards(envs.size(), -1);
  while (envs.under_way() > 0) {
    const EnvBatch batch = envs.recv();
    for (std::size_t i = 0; i < batch.rows(); ++i) {
      started[static_cast<std::size_t>(batch.env_ids[i])] = batch.started[i];
      rewards[static_cast<std::size_t>(batch.env_ids[i])] = batch.rewards[i];
    }
  }
  CHECK(started == std::vector<std::uint8_t>{1, 0, 1, 0});
  CHECK(rewards == std::vector<float>{0, 7, 0, -1});
}

TEST_CASE("a worker is opened again however long it was away") {
  EnvWorld world(1, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({1}));
  world.world.kill("w0");
  CHECK_THROWS_AS(envs.step_wait(), PeerLost);
  CHECK_FALSE(envs.wait_for_workers(1, 10min));
  CHECK(envs.workers()[0].opening);
  world.start(0);
  CHECK(envs.wait_for_workers(1, 10s));
  CHECK_FALSE(envs.workers()[0].opening);
  CHECK(envs.step_wait().started == Flags{1});
}

TEST_CASE("one may wait for a replacement of a worker that has failed by itself") {
  EnvWorld world(2, {.length = 100, .throws_at = 13});
  VectorEnv envs(*world.driver, world.options(1));
  CHECK(envs.wait_for_workers(2, 1h));
  envs.step_async(envs.reset(), bytes_of({13, 1}));
  CHECK(envs.step_wait().valid == Flags{0, 1});
  const Duration begun = world.world.time();
  CHECK(envs.wait_for_workers(1, 1h));
  CHECK(world.world.time() == begun);
  CHECK_FALSE(envs.wait_for_workers(2, 1h));
  CHECK(world.world.time() == begun + 1h);
  world.world.kill("w0");
  world.start(0);
  CHECK(envs.wait_for_workers(2, 10s));
  CHECK_THROWS_AS(envs.wait_for_workers(3, 1s), InvalidArgument);
}

TEST_CASE("a node that ends in good order may be replaced, as one that is killed") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  for (const std::size_t w : {std::size_t{0}, std::size_t{1}}) {
    envs.step_async(batch, bytes_of(all(batch, 1)));
    world.hosts.erase(w);
    batch = envs.step_wait();
    world.start(w);
    batch = until_all_valid(envs, batch);
    CHECK(batch.valid == Flags{1, 1});
  }
}

TEST_CASE("of a worker that hangs no second set of environments is made") {
  const auto census = std::make_shared<Census>();
  EnvWorld world(1, {.length = 1000, .census = census});
  VectorEnvOptions options = world.options(2);
  options.step_timeout = 50ms;
  VectorEnv envs(*world.driver, options);
  const EnvBatch batch = envs.reset();
  world.times[0] = 10min;
  envs.step_async(batch, bytes_of({1, 1}));
  CHECK_THROWS_AS(envs.step_wait(), PeerLost);
  CHECK_FALSE(envs.wait_for_workers(1, 9min));
  CHECK(census->most == 2);
  CHECK(envs.workers()[0].losses == 1);
  world.times.erase(0);
  CHECK(envs.wait_for_workers(1, 2min));
  CHECK(census->most == 2);
  CHECK(envs.step_wait().valid == Flags{1, 1});
}

TEST_CASE("a worker that ends in the midst of a rollout may be replaced, too") {
  EnvWorld world(1, {.length = 1000}, 1, std::make_shared<ConstantPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  envs.rollout_async(envs.reset(), 1000);
  world.world.run_for(10ms);
  world.hosts[0]->worker.reset();
  CHECK_THROWS_WITH(envs.step_wait(), Catch::Contains("environments are closing"));
  world.hosts[0]->serve(world, 0);
  CHECK(envs.wait_for_workers(1, 10s));
  CHECK(envs.step_wait().valid == Flags{1});
}

TEST_CASE("a VectorEnv that is destroyed opens no worker any more") {
  EnvWorld world(1, {.length = 1000});
  VectorEnvOptions options = world.options(1);
  options.step_timeout = 50ms;
  std::optional<VectorEnv> first(std::in_place, *world.driver, options);
  Node other(world.world.options("other"));
  first->step_async(first->reset(), bytes_of({1}));
  world.world.run_for(500us);
  world.world.network().partition("driver", "w0");  // so that its answer does not come in time
  world.world.run_for(10ms);
  first.reset();
  VectorEnv second(other, world.options(1));
  EnvBatch batch = second.reset();
  world.world.run_for(100ms);
  world.world.network().heal("driver", "w0");
  world.world.run_for(1s);
  second.step_async(batch, bytes_of({1}));
  batch = second.step_wait();
  CHECK(batch.valid == Flags{1});
  CHECK(second.workers()[0].losses == 0);
}

TEST_CASE("a worker that is back while a buffer is awaited does not change whose turn is next") {
  EnvWorld world(2, {.length = 1000});
  VectorEnv envs(*world.driver, world.options(1, 2));
  const EnvBatch first = envs.reset();
  envs.step_async(first, bytes_of({1, 1}));
  const EnvBatch second = envs.step_wait();
  world.times[0] = 20s;
  envs.step_async(second, bytes_of({1, 1}));
  (void)envs.step_wait();
  world.world.kill("w1");
  world.world.after(5s, [&] { world.start(1); });
  CHECK(envs.step_wait().sources[0].buffer == 1);  // w1 came back, with both buffers, meanwhile
  const EnvBatch batch = envs.step_wait();
  CHECK(batch.sources[0].buffer == 0);
  CHECK(batch.valid == Flags{0, 1});
  world.times.erase(0);
  envs.step_async(std::span(&batch.sources[1], 1), bytes_of({1}));
  const EnvBatch next = envs.step_wait();
  CHECK(next.sources[0].buffer == 0);
  CHECK(next.valid == Flags{0, 1});
}

TEST_CASE("an error of batchrpc's that a factory throws is said at once", "[threads]") {
  SimulatedWorld world;
  const Node driver(world.options("driver"));
  const Node node(world.options("w0"));
  const EnvWorker worker(node, [](std::size_t /*size*/) -> std::unique_ptr<EnvGroup> {
    throw NotFound("level 7 is not there");
  });
  const Duration before = world.time();
  CHECK_THROWS_WITH(VectorEnv(driver, {.workers = {"w0"}}),
                    Catch::Contains("batchrpc::NotFound: level 7 is not there"));
  CHECK(world.time() - before < 1s);
}

TEST_CASE("a replacement that does not make its environments in time is told, and asked again",
          "[threads]") {
  EnvWorld world(2, {.length = 100});
  VectorEnvOptions options = world.options(1);
  options.open_timeout = 3s;
  VectorEnv envs(*world.driver, options);
  (void)envs.reset();
  world.world.kill("w1");
  world.hosts.erase(1);
  Node node(world.world.options("w1"));
  std::vector<Promise<env::OpenReply>> asked;
  node.expose("envs.open", [&asked](const env::OpenRequest& /*request*/) {
    return asked.emplace_back().get_future();
  });
  CHECK_FALSE(envs.wait_for_workers(2, 10s));
  CHECK(asked.size() > 1);
  CHECK(envs.workers()[1].opening);
  CHECK_THAT(envs.workers()[1].last_loss, Catch::StartsWith("w1 could not be opened again") &&
                                              Catch::Contains("open_timeout (3 s)"));
  node.unexpose("envs.open");
  const EnvWorker worker(node, counting_envs());
  CHECK(envs.wait_for_workers(2, 10s));
}

TEST_CASE("a replacement that has no EnvWorker is told once, and open when it has one",
          "[threads]") {
  EnvWorld world(2, {.length = 100});
  VectorEnvOptions options = world.options(1);
  options.open_timeout = 3s;
  VectorEnv envs(*world.driver, options);
  (void)envs.reset();
  world.world.kill("w1");
  world.world.run_for(60s);  // away, which the loss says
  const std::string lost = envs.workers()[1].last_loss;
  CHECK_THAT(lost, !Catch::Contains("could not be opened again"));
  world.hosts.erase(1);
  const Node node(world.world.options("w1"));
  world.world.run_for(2s);
  CHECK(envs.workers()[1].last_loss == lost);  // it may have one yet
  world.world.run_for(3s);
  CHECK_THAT(envs.workers()[1].last_loss,
             Catch::StartsWith("w1 could not be opened again") && Catch::Contains("envs.open"));
  CHECK(envs.workers()[1].opening);
  CHECK(envs.workers()[1].losses == 1);
  const EnvWorker worker(node, counting_envs());
  CHECK(envs.wait_for_workers(2, 10s));
  CHECK(envs.workers()[1].refusals == 0);
}

}  // namespace worker_return_test
}  // namespace batchrpc::test
