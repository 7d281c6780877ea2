// Workers that answer what nobody has asked for.
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "env/step_messages.hpp"

namespace batchrpc::test {
namespace false_worker_test {

using Flags = std::vector<std::uint8_t>;

// A node that answers as a worker would, but for what a test changes.
struct FalseWorker {
  explicit FalseWorker(Node& node) {
    node.expose("envs.open", [this](const env::OpenRequest& /*request*/) { return opened; });
    node.expose("envs.reset",
                [this](const env::SessionId& /*session*/, std::uint32_t /*buffer*/,
                       std::optional<std::uint64_t> /*seed*/) { return make_ready_future(reply); });
    node.expose("envs.step", [this](const env::SessionId& /*session*/, std::uint32_t /*buffer*/,
                                    std::uint32_t /*steps*/, const Bytes& /*actions*/) {
      return make_ready_future(stepped);
    });
    const std::vector<std::int32_t> row{1, 2, 3, 4};
    opened.session = {1, 1};
    opened.spec.observation = {ElementType::int32, {4}};
    opened.spec.actions = 2;
    opened.extras = 0;
    reply.observations = Bytes::copy(std::as_bytes(std::span(row)));
    reply.rewards = {0};
    reply.flags = {0};
    stepped = reply;
  }
  env::OpenReply opened;
  env::StepReply reply;
  env::StepReply stepped;
};

TEST_CASE("an answer that is not of its size loses the worker, and harms nobody") {
  SimulatedWorld world;
  Node driver(world.options("driver"));
  Node node(world.options("w0"));
  FalseWorker worker(node);
  const VectorEnvOptions options{.workers = {"w0"}};
  const env::StepReply good = worker.reply;
  CHECK(VectorEnv(driver, options).reset().valid == Flags{1});
  const auto refused = [&] {
    VectorEnv envs(driver, options);
    CHECK_THROWS_WITH(envs.reset(), Catch::Contains("has another size"));
  };
  worker.reply.observations = Bytes::allocate(12);
  refused();
  worker.reply = good;
  worker.reply.rewards.clear();
  refused();
  worker.reply = good;
  worker.reply.flags = {0, 0};
  refused();
  worker.reply = good;
  worker.reply.final_rows = {1};
  worker.reply.final_observations = good.observations;
  refused();
  worker.reply = good;
  worker.reply.final_rows = {0};
  refused();
  worker.reply = good;
  worker.reply.episodes = {{.row = 4}};
  refused();
  worker.reply = good;
  worker.reply.versions = {1};
  refused();
}

TEST_CASE("what an answer is depends on what was asked, not on what the worker makes of it") {
  SimulatedWorld world;
  Node driver(world.options("driver"));
  Node node(world.options("w0"));
  FalseWorker worker(node);
  const VectorEnvOptions options{.workers = {"w0"}};
  const std::vector<std::int64_t> action{1};
  env::StepReply rolled_out = worker.stepped;
  rolled_out.versions = {1};
  rolled_out.actions = Bytes::copy(std::as_bytes(std::span(action)));

  VectorEnv envs(driver, options);
  envs.rollout_async(envs.reset(), 1);  // is answered by a step
  CHECK_THROWS_WITH(envs.step_wait(), Catch::Contains("a rollout of 1 steps"));
  worker.stepped = rolled_out;
  VectorEnv others(driver, options);
  EnvBatch batch = others.reset();
  others.rollout_async(batch, 1);
  batch = others.step_wait();
  CHECK(batch.versions == std::vector<std::uint64_t>{1});
  others.step_async(batch, std::as_bytes(std::span(action)));  // is answered by a rollout
  CHECK_THROWS_WITH(others.step_wait(), Catch::Contains("has another size"));
}

TEST_CASE("a worker whose environments nobody could hold is refused") {
  SimulatedWorld world;
  Node driver(world.options("driver"));
  Node node(world.options("w0"));
  FalseWorker worker(node);
  const VectorEnvOptions options{.workers = {"w0"}};
  worker.opened.spec.observation.shape = {std::int64_t{1} << 31};
  CHECK_THROWS_WITH(VectorEnv(driver, options), Catch::Contains("more than one message can carry"));
  worker.opened.spec.observation.shape = {-1};
  CHECK_THROWS_AS(VectorEnv(driver, options), InvalidArgument);
  worker.opened.spec.observation = {static_cast<ElementType>(99), {4}};
  CHECK_THROWS_AS(VectorEnv(driver, options), Error);
}

}  // namespace false_worker_test
}  // namespace batchrpc::test
