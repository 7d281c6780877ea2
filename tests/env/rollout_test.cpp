// Policies that live with the environments.
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <batchrpc/metrics/node_metrics.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/constant_policy.hpp"
#include "env/counting_env.hpp"
#include "env/env_world.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::test {
namespace rollout_test {

/// Chooses its weight plus the step that it sees; gives that step, and the episode.
class StepPolicy final : public WorkerPolicy {
 public:
  [[nodiscard]] std::size_t extras() const noexcept override { return 2; }

  std::uint64_t act(std::size_t /*buffer*/, std::size_t rows,
                    std::span<const std::byte> observations, std::span<std::byte> actions,
                    std::span<float> extras) override {
    const std::lock_guard lock(mutex_);
    const auto seen = elements_of<std::int32_t>(observations);
    const auto chosen = elements_of<std::int64_t>(actions);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::int32_t step = seen[4 * i + 2];
      chosen[i] = weight_ + step;
      extras[2 * i] = static_cast<float>(step);
      extras[2 * i + 1] = static_cast<float>(seen[4 * i + 1]);
    }
    return version_;
  }
  void update(Bytes weights, std::uint64_t version) override {
    if (weights.size() != sizeof(std::int64_t)) throw std::invalid_argument("not such weights");
    const std::lock_guard lock(mutex_);
    std::memcpy(&weight_, weights.data(), sizeof weight_);
    version_ = version;
  }

 private:
  std::mutex mutex_;
  std::int64_t weight_ = 0;
  std::uint64_t version_ = 0;
};

Bytes weights(std::int64_t weight) { return Bytes::copy(std::as_bytes(std::span(&weight, 1))); }

TEST_CASE(
    "a rollout's steps are chosen by the worker's policy, which says what it chose and gave") {
  EnvWorld world(1, {.length = 3}, 2, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(2, 1, Autoreset::same_step));
  EnvBatch batch = envs.reset();
  envs.push_policy(weights(10), 4).get();
  envs.rollout_async(batch, 4);
  batch = envs.step_wait();
  CHECK(batch.steps == 4);
  const auto actions = elements_of<std::int64_t>(batch.actions.span());
  CHECK(std::vector<std::int64_t>(actions.begin(), actions.end()) ==
        std::vector<std::int64_t>{10, 10, 11, 11, 12, 12, 10, 10});
  CHECK(batch.rewards == std::vector<float>{10, 10, 11, 11, 12, 12, 10, 10});
  CHECK(batch.extras == std::vector<float>{0, 1, 0, 1, 1, 1, 1, 1, 2, 1, 2, 1, 0, 2, 0, 2});
  CHECK(batch.versions == std::vector<std::uint64_t>{4, 4, 4, 4});
  CHECK(seen(batch)[0] == Seen{100, 1, 1, 10});
  CHECK(seen(batch)[4] == Seen{100, 2, 0, -1});
  CHECK(seen(batch.final_observations) == std::vector<Seen>{{100, 1, 3, 12}, {101, 1, 3, 12}});
  CHECK(seen(batch)[7] == Seen{101, 2, 1, 10});

  envs.rollout_async(batch, 1);  // goes on from there
  batch = envs.step_wait();
  CHECK(seen(batch) == std::vector<Seen>{{100, 2, 2, 11}, {101, 2, 2, 11}});
}

TEST_CASE("rollouts and steps with given actions may take turns") {
  EnvWorld world(2, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.step_async(batch, bytes_of({3, 4}));
  batch = envs.step_wait();
  CHECK(batch.actions.empty());
  CHECK(batch.extras.empty());
  CHECK(batch.versions.empty());
  envs.rollout_async(batch, 2);
  batch = envs.step_wait();
  CHECK(batch.versions == std::vector<std::uint64_t>{0, 0, 0, 0});
  CHECK(batch.rewards == std::vector<float>{1, 2, 1, 2});
}

TEST_CASE("a worker whose policy refuses weights is lost, and that is told") {
  EnvWorld world(1, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  Future<void> pushed = envs.push_policy(Bytes::allocate(3), 1);
  pushed.wait();
  CHECK_THROWS_AS(pushed.get(), PeerLost);
  CHECK_THROWS_WITH(pushed.get(), Catch::Contains("w0") && Catch::Contains("not such weights"));
  CHECK_FALSE(envs.workers()[0].opening);
}

TEST_CASE("a worker that comes back gets the last weights") {
  EnvWorld world(1, {.length = 1000}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.push_policy(weights(50), 9).get();
  envs.rollout_async(batch, 1);
  world.world.kill("w0");
  CHECK_THROWS_AS(envs.step_wait(), PeerLost);
  world.start(0);
  CHECK(envs.wait_for_workers(1, std::chrono::seconds(10)));
  batch = envs.step_wait();
  envs.rollout_async(batch, 1);
  batch = envs.step_wait();
  CHECK(batch.versions == std::vector<std::uint64_t>{9});
  CHECK(batch.rewards == std::vector<float>{50});
}

TEST_CASE("a worker that does not take weights is lost alone, and is given them when it is back") {
  EnvWorld world(2, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  world.world.kill("w1");
  world.policy = std::make_shared<StepPolicy>();
  CHECK_NOTHROW(envs.push_policy(weights(20), 1).get());
  CHECK_FALSE(envs.workers()[1].live);
  CHECK_NOTHROW(envs.push_policy(weights(30), 2).get());
  world.start(1);
  REQUIRE(envs.wait_for_workers(2, std::chrono::seconds(10)));
  EnvBatch back = envs.step_wait();
  CHECK(back.valid == std::vector<std::uint8_t>{0, 1});
  envs.rollout_async(back, 1);
  back = envs.step_wait();
  CHECK(back.versions == std::vector<std::uint64_t>{0, 2});
  CHECK(back.rewards == std::vector<float>{0, 30});
}

TEST_CASE("a worker that does not take weights in the time of a step is lost, and may come back") {
  using namespace std::chrono_literals;
  EnvWorld world(2, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnvOptions options = world.options(1);
  options.step_timeout = 50ms;
  VectorEnv envs(*world.driver, options);
  const EnvBatch batch = envs.reset();
  world.world.pause("w1");  // which the node itself notices after seconds
  const Duration before = world.world.time();
  CHECK_NOTHROW(envs.push_policy(weights(20), 1).get());
  CHECK(world.world.time() - before < 100ms);
  CHECK_FALSE(envs.workers()[1].live);
  CHECK_THAT(envs.workers()[1].last_loss, Catch::Contains("VectorEnvOptions::step_timeout"));
  world.world.resume("w1");
  CHECK(envs.wait_for_workers(2, 10s));
}

TEST_CASE("a replacement that refuses the weights is lost until another takes its place") {
  EnvWorld world(2, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.push_policy(weights(20), 1).get();
  world.world.kill("w1");
  struct Refusing final : ConstantPolicy {
    [[nodiscard]] std::size_t extras() const noexcept override { return 2; }
    void update(Bytes /*weights*/, std::uint64_t /*version*/) override {
      throw std::invalid_argument("of another network");
    }
  };
  world.policy = std::make_shared<Refusing>();
  world.start(1);
  CHECK_FALSE(envs.wait_for_workers(2, std::chrono::hours(1)));
  CHECK_FALSE(envs.workers()[1].opening);
  CHECK_THAT(envs.workers()[1].last_loss, Catch::Contains("of another network"));
  envs.rollout_async(batch, 1);
  batch = envs.step_wait();
  CHECK(batch.valid == std::vector<std::uint8_t>{1, 0});
  world.world.kill("w1");
  world.policy = std::make_shared<StepPolicy>();
  world.start(1);
  world.world.run_for(std::chrono::seconds(5));
  CHECK(envs.wait_for_workers(2, std::chrono::seconds(10)));
}

TEST_CASE("an error of batchrpc's that a policy throws loses its worker as any other does") {
  struct Asking final : ConstantPolicy {
    std::uint64_t act(std::size_t /*buffer*/, std::size_t /*rows*/,
                      std::span<const std::byte> /*observations*/, std::span<std::byte> /*actions*/,
                      std::span<float> /*extras*/) override {
      throw NotFound("there is no model to ask");
    }
    void update(Bytes /*weights*/, std::uint64_t /*version*/) override {
      throw Overloaded("the model is busy");
    }
  };
  EnvWorld world(1, {.length = 100}, 1, std::make_shared<Asking>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  if (GENERATE(false, true)) {
    envs.rollout_async(batch, 1);
    CHECK_THROWS_WITH(envs.step_wait(), Catch::Contains("no model to ask"));
  } else {
    CHECK_THROWS_WITH(envs.push_policy(weights(1), 1).get(), Catch::Contains("the model is busy"));
  }
  CHECK_FALSE(envs.workers()[0].live);
  CHECK_FALSE(envs.workers()[0].opening);
}

TEST_CASE("a replacement without a policy is refused until another takes its place") {
  EnvWorld world(2, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  world.world.kill("w1");
  const auto policy = std::exchange(world.policy, nullptr);
  world.start(1);
  CHECK_FALSE(envs.wait_for_workers(2, std::chrono::hours(1)));
  CHECK_THAT(envs.workers()[1].last_loss, Catch::Contains("no policy"));
  world.world.kill("w1");
  world.policy = policy;
  world.start(1);
  world.world.run_for(std::chrono::seconds(5));
  CHECK(envs.wait_for_workers(2, std::chrono::seconds(10)));
}

TEST_CASE("a rollout takes from one step to as many as a message does") {
  EnvWorld world(1, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  const std::string allowed = "one message can carry 1 to " + std::to_string(envs.max_steps());
  CHECK_THROWS_WITH(envs.rollout_async(batch, 0), Catch::Contains(allowed));
  CHECK_THROWS_WITH(envs.rollout_async(batch, envs.max_steps() + 1), Catch::Contains(allowed));
  envs.rollout_async(batch, 1);
  CHECK(envs.step_wait().steps == 1);
}

TEST_CASE("weights need a policy, and do not go back") {
  EnvWorld world(1, {}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(1));
  envs.push_policy(weights(1), 7).get();
  CHECK_THROWS_WITH(envs.push_policy(weights(1), 6).get(),
                    Catch::Contains("6 is older than the present version 7"));
  CHECK(envs.workers()[0].live);

  EnvWorld without(1);
  VectorEnv others(*without.driver, without.options(1));
  CHECK_THROWS_WITH(others.push_policy(weights(1), 1), Catch::Contains("workers have no policy"));
  CHECK(others.workers()[0].live);
  const auto of_worker = without.driver->call<env::PolicyFunction>(
      "w0", "envs.policy", env::SessionId{}, weights(1), std::uint64_t{1});
  CHECK_THROWS_WITH(of_worker.get(), Catch::Contains("this worker has none"));
}

TEST_CASE("workers with and without a policy are not alike, also where it says no numbers") {
  struct Silent final : ConstantPolicy {
    [[nodiscard]] std::size_t extras() const noexcept override { return 0; }
  };
  EnvWorld world(1, {.length = 100}, 1, std::make_shared<Silent>());
  world.policy = nullptr;
  world.names.emplace_back("w1");
  world.start(1);
  CHECK_THROWS_WITH(VectorEnv(*world.driver, world.options(1)),
                    Catch::Contains("0 numbers of its policy") && Catch::Contains("no policy"));
}

TEST_CASE("a worker that comes back among rollouts has the last rows of its batch") {
  EnvWorld world(2, {.length = 100}, 1, std::make_shared<StepPolicy>());
  VectorEnv envs(*world.driver, world.options(2));
  EnvBatch batch = envs.reset();
  for (int i = 0; i < 1000; ++i) {
    envs.rollout_async(batch, 3);
    if (i == 0) {
      world.world.kill("w0");
      world.start(0);
    }
    batch = envs.step_wait();
    if (batch.valid[4] != 0) break;
  }
  REQUIRE(batch.steps == 3);
  CHECK(batch.valid == std::vector<std::uint8_t>{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(batch.started == std::vector<std::uint8_t>{0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0});
  CHECK(seen(batch)[3] == Seen{0, 0, 0, 0});
  CHECK(seen(batch)[4] == Seen{104, 1, 0, -1});
  const std::vector<std::uint64_t> of_first(batch.versions.begin(), batch.versions.begin() + 3);
  CHECK(of_first == std::vector<std::uint64_t>{0, 0, 0});
  const auto actions = elements_of<std::int64_t>(batch.actions.span());
  CHECK(actions[5] == 0);
  CHECK(actions[6] == static_cast<std::int64_t>(seen(batch)[6][2]) - 1);
  CHECK(envs.extras() == 2);
  CHECK(batch.extras.size() == 2 * batch.rows());
  envs.rollout_async(batch, 3);
  CHECK(envs.step_wait().valid == std::vector<std::uint8_t>(12, 1));
}

TEST_CASE("recv gives groups of different numbers of steps beside each other") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(1));
  EnvBatch batch = envs.reset();
  envs.step_async(std::span(&batch.sources[0], 1), bytes_of({1, 2, 3}), 3);
  envs.step_async(std::span(&batch.sources[1], 1), bytes_of({9}));
  batch = envs.recv(2);
  REQUIRE(batch.steps == 3);
  CHECK(batch.env_ids == std::vector<std::int64_t>{1, 0});
  CHECK(batch.rewards == std::vector<float>{0, 0, 9, 1, 2, 3});
  CHECK(batch.valid == std::vector<std::uint8_t>{0, 0, 1, 1, 1, 1});
  CHECK(seen(batch)[2] == Seen{101, 1, 1, 9});
  CHECK(seen(batch)[5] == Seen{100, 1, 3, 3});
}

TEST_CASE("a policy may choose anything for environments that the next step resets") {
  // Chooses what the spec does not allow where it sees an episode's last observation.
  struct Careless final : ConstantPolicy {
    std::uint64_t act(std::size_t /*buffer*/, std::size_t rows,
                      std::span<const std::byte> observations, std::span<std::byte> actions,
                      std::span<float> /*extras*/) override {
      for (std::size_t i = 0; i < rows; ++i) {
        const bool last = elements_of<std::int32_t>(observations)[4 * i + 2] == 2;
        elements_of<std::int64_t>(actions)[i] = last ? -1 : 1;
      }
      return 1;
    }
  };
  EnvWorld world(1, {.length = 2}, 1, std::make_shared<Careless>());
  VectorEnv envs(*world.driver, world.options(2));
  envs.rollout_async(envs.reset(), 4);
  CHECK(envs.step_wait().rewards == std::vector<float>{1, 1, 1, 1, 0, 0, 1, 1});
}

TEST_CASE("what large rollouts took goes back to the system when it is not needed any more") {
  constexpr std::size_t kPadding = 20000;  // 80 KB an environment
  EnvWorld world(2, {.length = 100, .padding = kPadding}, 1, std::make_shared<ConstantPolicy>());
  VectorEnv envs(*world.driver, world.options(2));
  EnvBatch batch = envs.reset();
  for (int i = 0; i < 3; ++i) {
    envs.rollout_async(batch, 16);
    batch = envs.step_wait();
  }
  CHECK(batch.observations.size() > (std::size_t{1} << 22));
  CHECK(world.driver->metrics().payload_bytes_in_use >= batch.observations.size());
  batch = {};
  const auto taken_by = [](const Node& node) {
    const NodeMetrics metrics = node.metrics();
    return metrics.payload_bytes_in_use + metrics.payload_bytes_kept;
  };
  CHECK(taken_by(world.hosts[0]->node) > 0);
  world.world.run_for(std::chrono::seconds(10));
  CHECK(taken_by(*world.driver) == 0);
  CHECK(taken_by(world.hosts[0]->node) == 0);
}

TEST_CASE("a policy that chooses what the spec does not allow loses its worker, and is told of") {
  struct Wrong final : ConstantPolicy {
    std::uint64_t act(std::size_t /*buffer*/, std::size_t /*rows*/,
                      std::span<const std::byte> /*observations*/, std::span<std::byte> actions,
                      std::span<float> /*extras*/) override {
      elements_of<std::int64_t>(actions)[0] = 1001;
      return 1;
    }
  };
  EnvWorld world(1, {}, 1, std::make_shared<Wrong>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  envs.rollout_async(batch, 3);
  CHECK_THROWS_WITH(
      envs.step_wait(),
      Catch::Contains("the worker's policy failed in step 1 of 3: action 0 of 1 is 1001"));
}

}  // namespace rollout_test
}  // namespace batchrpc::test
