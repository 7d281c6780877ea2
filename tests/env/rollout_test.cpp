// Policies that live with the environments.
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "env/counting_env.hpp"
#include "env/env_world.hpp"

namespace batchrpc::test {
namespace {

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

TEST_CASE("a worker whose policy refuses weights is lost for good, and that is told") {
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

TEST_CASE("a policy that chooses what the spec does not allow loses its worker, and is told of") {
  class Wrong final : public WorkerPolicy {
   public:
    [[nodiscard]] std::size_t extras() const noexcept override { return 0; }
    std::uint64_t act(std::size_t /*buffer*/, std::size_t /*rows*/,
                      std::span<const std::byte> /*observations*/, std::span<std::byte> actions,
                      std::span<float> /*extras*/) override {
      elements_of<std::int64_t>(actions)[0] = 1001;
      return 1;
    }
    void update(Bytes /*weights*/, std::uint64_t /*version*/) override {}
  };
  EnvWorld world(1, {}, 1, std::make_shared<Wrong>());
  VectorEnv envs(*world.driver, world.options(1));
  const EnvBatch batch = envs.reset();
  envs.rollout_async(batch, 3);
  CHECK_THROWS_WITH(envs.step_wait(), Catch::Contains("1001"));
}

}  // namespace
}  // namespace batchrpc::test
