// Over real sockets, with lanes that are threads.
#include <atomic>
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "env/constant_policy.hpp"
#include "env/counting_env.hpp"
#include "env/env_world.hpp"
#include "node/real_nodes.hpp"

namespace batchrpc::test {
namespace vector_env_threads_test {

using namespace std::chrono_literals;

struct RealWorkers {
  RealWorkers(std::size_t count, Counting how, std::size_t lanes, bool have_policies = false)
      : driver(real_root("driver", 2)),
        workers(count),
        how_(std::move(how)),
        lanes_(lanes),
        have_policies_(have_policies) {
    for (std::size_t w = 0; w < count; ++w) {
      names.push_back("w" + std::to_string(w));
      nodes.push_back(std::make_unique<Node>(real_joining(driver, names.back(), 2)));
      restart(w);
    }
  }
  /// Ends its EnvWorker, if it has one, and makes another.
  void restart(std::size_t w) {
    workers[w].reset();
    workers[w] = std::make_unique<EnvWorker>(
        *nodes[w], counting_envs(how_),
        EnvWorkerOptions{.lanes = thread_lanes(lanes_),
                         .policy = have_policies_ ? std::make_shared<ConstantPolicy>() : nullptr});
  }
  std::vector<std::string> names;
  Node driver;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<EnvWorker>> workers;

 private:
  Counting how_;
  std::size_t lanes_;
  bool have_policies_;
};

// Each environment's rows follow each other: its steps count on, whoever was faster.
void check_steps(VectorEnv& envs, std::size_t padding, bool any_worker) {
  std::vector<std::int32_t> steps(envs.size());
  envs.reset_async();
  EnvBatch batch = any_worker ? envs.recv() : envs.step_wait();
  std::size_t rows = 0;
  while (rows < 3000) {
    const std::vector<Seen> all_seen = seen(batch, padding);
    bool right = true;
    for (std::size_t i = 0; i < batch.rows(); ++i) {
      const auto id = static_cast<std::size_t>(batch.env_ids[i]);
      const auto seed = static_cast<std::int32_t>(100 + id);
      const std::int32_t step = batch.started[i] != 0 ? 0 : ++steps[id];
      const std::int32_t action = step == 0 ? -1 : static_cast<std::int32_t>(id);
      right = right && all_seen[i] == Seen{seed, 1, step, action};
    }
    REQUIRE(right);
    rows += batch.rows();
    envs.step_async(batch, bytes_of(batch.env_ids));  // each its number
    batch = any_worker ? envs.recv() : envs.step_wait();
  }
}

TEST_CASE("over sockets, with threads and two buffers, no step is lost and none comes twice",
          "[threads]") {
  for (const std::size_t padding : {std::size_t{0}, std::size_t{20000}}) {
    RealWorkers world(2, {.length = 100'000, .padding = padding}, 2);
    for (const bool any_worker : {false, true}) {
      VectorEnv envs(world.driver,
                     {.workers = world.names, .envs_per_worker = 4, .buffers = 2, .seed = 100});
      check_steps(envs, padding, any_worker);
    }
  }
}

TEST_CASE("a worker may end while its environments are being stepped, and come back", "[threads]") {
  RealWorkers world(2, {.length = 100'000}, 2);
  VectorEnv envs(world.driver, {.workers = world.names, .envs_per_worker = 2, .seed = 100});
  EnvBatch batch = envs.reset();
  std::optional<std::thread> ending;
  for (int i = 0; i < 10'000 && batch.valid[2] != 0; ++i) {
    if (i == 100) ending.emplace([&] { world.workers[1].reset(); });
    envs.step_async(batch, bytes_of(all(batch, 1)));
    batch = envs.step_wait();
  }
  ending->join();
  CHECK(batch.valid == std::vector<std::uint8_t>{1, 1, 0, 0});
  world.restart(1);
  CHECK(envs.wait_for_workers(2, 60s));
  while (batch.valid[2] == 0) {
    envs.step_async(batch, bytes_of(all(batch, 1)));
    batch = envs.step_wait();
  }
  CHECK(batch.started == std::vector<std::uint8_t>{0, 0, 1, 1});
}

TEST_CASE("a worker may end and come back again and again while steps and weights are under way",
          "[threads]") {
  RealWorkers world(2, {.length = 100'000}, 1, true);
  VectorEnv envs(world.driver,
                 {.workers = world.names, .envs_per_worker = 2, .buffers = 2, .seed = 100});
  constexpr int kLives = 20;
  std::atomic<int> begun = 0;  // lives of w1 whose first observations have come
  std::thread ending([&] {
    for (int life = 1; life < kLives; ++life) {
      for (int seen = begun; seen < life; seen = begun)
        begun.wait(seen);
      world.restart(1);
    }
  });
  std::vector<std::int32_t> steps_of_w0(4, -1);
  bool in_turn = true;
  envs.reset_async();
  for (std::uint64_t version = 1; begun < kLives; ++version) {
    const EnvBatch batch = envs.recv();
    const std::vector<Seen> all_seen = seen(batch);
    for (std::size_t i = 0; i < batch.rows(); ++i) {
      const EnvBatch::Group& source = batch.sources[i / batch.envs];
      const std::size_t env = source.buffer * batch.envs + i % batch.envs;
      if (source.worker == 0) {
        in_turn = in_turn && all_seen[i][2] == ++steps_of_w0[env];
      } else if (env == 0 && batch.started[i] != 0) {
        ++begun;
        begun.notify_one();
      }
    }
    envs.step_async(batch, bytes_of(all(batch, 1)));
    static_cast<void>(envs.push_policy(Bytes::allocate(8), version));
  }
  ending.join();
  CHECK(in_turn);
  CHECK(envs.workers()[0].losses == 0);
  CHECK(envs.workers()[1].losses == kLives - 1);
}

TEST_CASE("a driver may end while environments are being stepped", "[threads]") {
  RealWorkers world(2, {.length = 100'000}, 2);
  for (int i = 0; i < 20; ++i) {
    VectorEnv envs(world.driver, {.workers = world.names, .envs_per_worker = 2, .buffers = 2});
    const EnvBatch batch = envs.reset();
    envs.step_async(batch, bytes_of(all(batch, 1)));
  }
  VectorEnv envs(world.driver, {.workers = world.names, .envs_per_worker = 2});
  CHECK(envs.reset().valid == std::vector<std::uint8_t>{1, 1, 1, 1});
}

}  // namespace vector_env_threads_test
}  // namespace batchrpc::test
