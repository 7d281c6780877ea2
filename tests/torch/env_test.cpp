#include "batchrpc/torch/env.hpp"

#include <torch/torch.h>

#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "env/constant_policy.hpp"
#include "env/counting_env.hpp"
#include "env/env_world.hpp"

namespace batchrpc::test {
namespace env_test {

std::vector<std::int64_t> sizes(const at::Tensor& tensor) { return tensor.sizes().vec(); }

TEST_CASE("a batch's observations are a tensor that shares its memory, and outlives it") {
  EnvWorld world(2, {.length = 1});
  VectorEnv envs(*world.driver, world.options(2, 1, Autoreset::same_step));
  EnvBatch batch = envs.reset();
  step_async(envs, batch, torch::tensor({5, 6, 7, 8}, torch::kInt));  // any integers
  batch = envs.step_wait();

  std::optional<EnvBatch> gone(batch);
  const at::Tensor observations = observations_of(*gone);
  const at::Tensor last = final_observations_of(*gone);
  gone.reset();
  CHECK(observations.data_ptr() == batch.observations.data());
  batch = {};
  CHECK(observations.scalar_type() == at::kInt);
  CHECK(sizes(observations) == std::vector<std::int64_t>{4, 4});
  CHECK(observations[3].equal(torch::tensor({103, 2, 0, -1}, torch::kInt)));
  CHECK(sizes(last) == std::vector<std::int64_t>{4, 4});
  CHECK(last[3].equal(torch::tensor({103, 1, 1, 8}, torch::kInt)));
}

TEST_CASE("rewards and flags have a row an environment, or of several steps [G, n, k]") {
  EnvWorld world(2, {.length = 2});
  VectorEnv envs(*world.driver, world.options(3));
  EnvBatch batch = envs.reset();
  CHECK(started_of(batch).equal(torch::ones({6}, torch::kBool)));
  CHECK(valid_of(batch).equal(torch::ones({6}, torch::kBool)));
  CHECK(final_observations_of(batch).size(0) == 0);
  step_async(envs, batch, torch::arange(12).reshape({2, 2, 3}), 2);
  batch = envs.step_wait();
  CHECK(rewards_of(batch).equal(torch::arange(12, torch::kFloat).reshape({2, 2, 3})));
  CHECK(sizes(observations_of(batch)) == std::vector<std::int64_t>{2, 2, 3, 4});
  CHECK(observations_of(batch)[1][1][2].equal(torch::tensor({105, 1, 2, 11}, torch::kInt)));
  CHECK(terminated_of(batch).select(1, 0).sum().item<std::int64_t>() == 0);
  CHECK(terminated_of(batch).select(1, 1).sum().item<std::int64_t>() == 6);
  CHECK(truncated_of(batch).sum().item<std::int64_t>() == 0);
}

// Takes int32 actions, 0 to 9, which are its rewards.
class Narrow final : public Env {
 public:
  Narrow() {
    spec_.observation = {ElementType::int32, {1}};
    spec_.action = {ElementType::int32, {}};
    spec_.actions = 10;
  }
  [[nodiscard]] const EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> /*seed*/, std::span<std::byte> observation) override {
    elements_of<std::int32_t>(observation)[0] = 0;
  }
  [[nodiscard]] EnvStep step(std::span<const std::byte> action,
                             std::span<std::byte> observation) override {
    const std::int32_t chosen = elements_of<std::int32_t>(action)[0];
    elements_of<std::int32_t>(observation)[0] = chosen;
    return {.reward = static_cast<float>(chosen)};
  }

 private:
  EnvSpec spec_;
};

TEST_CASE("actions of a wider type are not cut to ones that are allowed") {
  SimulatedWorld world;
  const Node driver(world.options("driver"));
  const Node node(world.options("w0"));
  const EnvWorker worker(node, group_of([] { return std::make_unique<Narrow>(); }),
                         {.lanes = timed_lanes(1, world.loop(), [](std::size_t /*lane*/) {
                            return Duration(std::chrono::milliseconds(1));
                          })});
  VectorEnv envs(driver, {.workers = {"w0"}});
  EnvBatch batch = envs.reset();
  CHECK_THROWS_WITH(step_async(envs, batch, torch::full({1}, (std::int64_t{1} << 32) + 1)),
                    Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(step_async(envs, batch, torch::full({1}, 10)), Catch::Contains("0 to 9"));
  step_async(envs, batch, torch::full({1}, 9));
  CHECK(envs.step_wait().rewards == std::vector<float>{9});
}

TEST_CASE("actions and extras of a rollout are tensors, beside the rows") {
  EnvWorld world(1, {.length = 100}, 1, std::make_shared<ConstantPolicy>());
  VectorEnv envs(*world.driver, world.options(2));
  envs.rollout_async(envs.reset(), 3);
  const EnvBatch batch = envs.step_wait();
  CHECK(actions_of(batch).equal(torch::ones({1, 3, 2}, torch::kLong)));
  CHECK(sizes(extras_of(batch)) == std::vector<std::int64_t>{1, 3, 2, 1});
  CHECK(extras_of(batch)[0][2][1][0].item<float>() == 2);
}

TEST_CASE("tensors that are no actions are refused, in words that say what is wanted") {
  EnvWorld world(1);
  VectorEnv envs(*world.driver, world.options(2));
  const EnvBatch batch = envs.reset();
  CHECK_THROWS_WITH(step_async(envs, batch, torch::zeros({2})),
                    Catch::Contains("float32 [2]") && Catch::Contains("int64 [] each"));
  CHECK_THROWS_WITH(step_async(envs, batch, torch::zeros({3}, torch::kLong)),
                    Catch::Contains("one row is needed for each of 2 environments"));
  CHECK_THROWS_WITH(step_async(envs, batch, torch::zeros({2, 1}, torch::kLong)),
                    Catch::Contains("int64 [2, 1]"));
  CHECK_THROWS_AS(step_async(envs, batch, at::Tensor()), InvalidArgument);
  CHECK_THROWS_WITH(step_async(envs, EnvBatch{}, torch::zeros({2}, torch::kLong)),
                    "the batch was not made by a VectorEnv");
  CHECK_THROWS_WITH(step_async(envs, batch, torch::full({2}, 5000)), Catch::Contains("5000"));
  CHECK_THROWS_WITH(actions_of(batch), Catch::Contains("rollout_async"));
  CHECK_THROWS_AS(extras_of(batch), InvalidArgument);
  step_async(envs, batch,
             torch::tensor({1, 2, 3, 4}, torch::kLong).slice(0, 0, 4, 2));  // not dense
  CHECK(envs.step_wait().rewards == std::vector<float>{1, 3});
}

TEST_CASE("tensors with as many elements in another order are no actions") {
  EnvWorld world(2, {.length = 100});
  VectorEnv envs(*world.driver, world.options(3));
  EnvBatch batch = envs.reset();
  const at::Tensor actions = torch::arange(24).reshape({2, 4, 3});
  CHECK_THROWS_WITH(step_async(envs, batch, actions.permute({1, 0, 2}), 4),
                    Catch::Contains("[2, 4, 3] rows are needed"));
  CHECK_THROWS_AS(step_async(envs, batch, actions.reshape({4, 6}), 4), InvalidArgument);
  step_async(envs, batch, actions, 4);
  CHECK(rewards_of(envs.step_wait()).to(torch::kLong).equal(actions));
  batch = envs.reset();
  CHECK_THROWS_AS(step_async(envs, batch, torch::zeros({3, 2}, torch::kLong)), InvalidArgument);
  step_async(envs, batch, torch::arange(6).reshape({2, 3}));
  batch = envs.step_wait();
  step_async(envs, batch, torch::arange(6).reshape({2, 1, 3}), 1);
  CHECK(envs.step_wait().rewards == std::vector<float>{0, 1, 2, 3, 4, 5});
}

}  // namespace env_test
}  // namespace batchrpc::test
