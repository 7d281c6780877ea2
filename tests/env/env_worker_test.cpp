// A worker's remote functions, as peers that mean no good would call them.
#include "batchrpc/env/env_worker.hpp"

#include <algorithm>
#include <atomic>
#include <batchrpc/base/error.hpp>
#include <batchrpc/future/promise.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "env/constant_policy.hpp"
#include "env/counting_env.hpp"
#include "env/env_world.hpp"
#include "env/step_messages.hpp"
#include "node/real_nodes.hpp"

namespace batchrpc::test {
namespace env_worker_test {

using namespace std::chrono_literals;

struct OneWorker : EnvWorld {
  explicit OneWorker(Counting how = {}, std::shared_ptr<WorkerPolicy> of_worker = nullptr)
      : EnvWorld(1, std::move(how), 1, std::move(of_worker)) {
    session = open().get().session;
  }
  Future<env::OpenReply> open() {
    return driver->call<env::OpenFunction>("w0", "envs.open",
                                           env::OpenRequest{1, 2, Autoreset::next_step});
  }
  Future<env::StepReply> step(const env::SessionId& of_session, std::uint32_t buffer,
                              std::uint32_t steps, std::vector<std::int64_t> actions) {
    return driver->call<env::StepFunction>("w0", "envs.step", of_session, buffer, steps,
                                           Bytes::copy(bytes_of(actions)));
  }
  Future<env::StepReply> reset() {
    return driver->call<env::ResetFunction>("w0", "envs.reset", session, 0U,
                                            std::optional<std::uint64_t>(5));
  }
  [[nodiscard]] env::SessionId after_session() const {
    return {.worker = session.worker, .number = session.number + 1};
  }
  env::SessionId session;
};

TEST_CASE("a worker refuses steps of another session, another buffer, or of the wrong size") {
  OneWorker world;
  world.reset().get();
  CHECK_THROWS_AS(world.step(world.after_session(), 0, 1, {1, 1}).get(), InvalidArgument);
  CHECK_THROWS_WITH(world.step(world.session, 1, 1, {1, 1}).get(),
                    Catch::Contains("no buffer number 1"));
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1}).get(), Catch::Contains("16 bytes"));
  CHECK_THROWS_AS(world.step(world.session, 0, 0, {1, 1}).get(), InvalidArgument);
  CHECK_THROWS_AS(
      world.step(world.session, 0, std::numeric_limits<std::uint32_t>::max(), {1, 1}).get(),
      InvalidArgument);
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 2000}).get(), Catch::Contains("2000"));
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {}).get(), Catch::Contains("needs a policy"));
  CHECK(world.step(world.session, 0, 1, {1, 1}).get().rewards == std::vector<float>{1, 1});
}

TEST_CASE("a worker steps nothing that was not reset, and nothing twice at once") {
  OneWorker world;
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 1}).get(),
                    Catch::Contains("must be reset first"));
  world.reset().get();
  Future<env::StepReply> first = world.step(world.session, 0, 1, {1, 1});
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 1}).get(),
                    Catch::Contains("being stepped"));
  CHECK(std::move(first).get().rewards.size() == 2);
}

TEST_CASE("a worker says apart whether it was started anew or opened by another driver") {
  OneWorker world;
  const env::SessionId of_another{.worker = world.session.worker + 1,
                                  .number = world.session.number};
  CHECK_THROWS_AS(world.step(of_another, 0, 1, {1, 1}).get(), NotFound);
  const env::SessionId before = std::exchange(world.session, world.open().get().session);
  CHECK(world.session != before);
  CHECK_THROWS_WITH(world.step(before, 0, 1, {1, 1}).get(), Catch::Contains("opened again"));
}

TEST_CASE("a worker makes environments when those before are gone") {
  OneWorker world;
  world.times[0] = 50ms;
  world.reset().get();
  Future<env::StepReply> step = world.step(world.session, 0, 1, {1, 1});
  CHECK_THROWS_AS(world.open().get(), Overloaded);
  CHECK_THROWS_WITH(world.step(world.session, 0, 1, {1, 1}).get(), Catch::Contains("opened again"));
  CHECK(std::move(step).get().rewards.size() == 2);
  world.session = world.open().get().session;
  CHECK(world.reset().get().rewards.size() == 2);
}

// Steps, and ends, when it may.
struct Gates {
  Promise<void> stepping, may_step, ending, may_end;
  Future<void> is_stepping = stepping.get_future(), step = may_step.get_future(),
               is_ending = ending.get_future(), end = may_end.get_future();
  std::atomic<int> alive{0};
  std::atomic<int> most{0};
};
class GatedEnv final : public Env {
 public:
  explicit GatedEnv(Gates& gates) : gates_(gates), first_(gates.most == 0) {
    gates_.most = std::max(gates_.most.load(), ++gates_.alive);
    spec_.observation = {ElementType::int32, {1}};
    spec_.actions = 2;
  }
  GatedEnv(const GatedEnv&) = delete;
  GatedEnv& operator=(const GatedEnv&) = delete;
  ~GatedEnv() override {
    if (first_) {
      gates_.ending.set_value();
      gates_.end.wait();
    }
    --gates_.alive;
  }
  [[nodiscard]] const EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> /*seed*/, std::span<std::byte> /*observation*/) override {
  }
  [[nodiscard]] EnvStep step(std::span<const std::byte> /*action*/,
                             std::span<std::byte> /*observation*/) override {
    gates_.stepping.set_value();
    gates_.step.wait();
    return {};
  }

 private:
  Gates& gates_;
  const bool first_;
  EnvSpec spec_;
};

TEST_CASE("environments that take their time to end are not gone before they have", "[threads]") {
  Gates gates;
  Node driver(real_root("driver", 2));
  const Node node(real_joining(driver, "w0", 2));
  const EnvWorker worker(node, group_of([&gates] { return std::make_unique<GatedEnv>(gates); }));
  const auto open = [&] {
    return driver.call<env::OpenFunction>("w0", "envs.open", env::OpenRequest{});
  };
  const env::SessionId session = open().get().session;
  driver.call<env::ResetFunction>("w0", "envs.reset", session, 0U, std::optional<std::uint64_t>(5))
      .get();
  const std::vector<std::int64_t> action{1};
  Future<env::StepReply> step = driver.call<env::StepFunction>("w0", "envs.step", session, 0U, 1U,
                                                               Bytes::copy(bytes_of(action)));
  gates.is_stepping.wait();
  CHECK_THROWS_AS(open().get(), Overloaded);
  gates.may_step.set_value();
  gates.is_ending.wait();
  CHECK_THROWS_AS(open().get(), Overloaded);
  CHECK(gates.most == 1);
  gates.may_end.set_value();
  step.wait();
  CHECK_NOTHROW(open().get());
  CHECK(gates.most == 1);
}

TEST_CASE("a worker makes the environments of one driver at a time", "[threads]") {
  Node driver(real_root("driver", 2));
  const Node node(real_joining(driver, "w0", 2));
  Promise<void> begun;
  Promise<void> go_on;
  const Future<void> has_begun = begun.get_future();
  const Future<void> may_go_on = go_on.get_future();
  int made = 0;  // the first one on one thread, the others refused
  const EnvWorker worker(node, [&](std::size_t size) {
    if (++made == 1) {
      begun.set_value();
      may_go_on.wait();
    }
    return counting_envs()(size);
  });
  const auto open = [&] {
    return driver.call<env::OpenFunction>("w0", "envs.open", env::OpenRequest{});
  };
  Future<env::OpenReply> first = open();
  has_begun.wait();
  CHECK_THROWS_AS(open().get(), Overloaded);
  go_on.set_value();
  CHECK_NOTHROW(first.get());
  CHECK(made == 1);
  CHECK_NOTHROW(open().get());
}

TEST_CASE("a worker makes no more environments than its options allow") {
  OneWorker world;
  const auto open = [&](std::uint32_t buffers, std::uint32_t envs, Autoreset autoreset) {
    return world.driver
        ->call<env::OpenFunction>("w0", "envs.open", env::OpenRequest{buffers, envs, autoreset})
        .get();
  };
  CHECK_THROWS_WITH(open(2, 40000, Autoreset::next_step), Catch::Contains("max_envs"));
  CHECK_THROWS_AS(open(0, 1, Autoreset::next_step), InvalidArgument);
  CHECK_THROWS_AS(open(1, 0, Autoreset::next_step), InvalidArgument);
  CHECK_THROWS_AS(open(17, 1, Autoreset::next_step), InvalidArgument);
  CHECK_THROWS_AS(open(1, 1, static_cast<Autoreset>(7)), Error);
}

TEST_CASE("a worker that cannot expose all its functions leaves none behind", "[threads]") {
  SimulatedWorld world;
  Node node(world.options("worker"));
  node.expose("envs.open", [] { return 7; });
  CHECK_THROWS_AS(EnvWorker(node, counting_envs()), InvalidArgument);
  CHECK(exposed_functions(node).size() == 1);
  node.unexpose("envs.open");
  const EnvWorker worker(node, counting_envs());
  CHECK(exposed_functions(node).size() == 4);
}

TEST_CASE("a worker that ends leaves no function behind", "[threads]") {
  SimulatedWorld world;
  Node node(world.options("worker"));
  auto worker = std::make_unique<EnvWorker>(node, counting_envs());
  CHECK(exposed_functions(node).size() == 4);
  CHECK_THROWS_AS(EnvWorker(node, counting_envs()), InvalidArgument);
  CHECK(exposed_functions(node).size() == 4);
  const EnvWorker another(node, counting_envs(), {.service = "others"});
  CHECK(exposed_functions(node).size() == 8);
  worker.reset();
  CHECK(exposed_functions(node).size() == 4);
}

TEST_CASE("a worker that ends answers what is under way: steps with what came of them") {
  OneWorker world;
  world.times[0] = 50ms;
  world.reset().get();
  Future<env::StepReply> step = world.step(world.session, 0, 1, {1, 1});
  world.world.run_for(1ms);
  world.hosts[0]->worker.reset();
  CHECK(std::move(step).get().rewards == std::vector<float>{1, 1});
}

TEST_CASE("a worker that ends answers what is under way: rollouts, which it cuts short") {
  OneWorker world({}, std::make_shared<ConstantPolicy>());
  world.reset().get();
  Future<env::StepReply> rollout = world.step(world.session, 0, 1000, {});
  world.world.run_for(10ms);
  world.hosts[0]->worker.reset();
  CHECK(world.world.time() < 100ms);
  CHECK_THROWS_AS(std::move(rollout).get(), ShutDown);
}

TEST_CASE("a rollout of environments that are gone is cut short, too") {
  OneWorker world({}, std::make_shared<ConstantPolicy>());
  world.reset().get();
  Future<env::StepReply> rollout = world.step(world.session, 0, 1000, {});
  world.world.run_for(10ms);
  CHECK_THROWS_AS(world.open().get(), Overloaded);
  CHECK_THROWS_WITH(std::move(rollout).get(),
                    Catch::Contains("closed while they were being stepped"));
  CHECK(world.world.time() < 100ms);
  CHECK_NOTHROW(world.open().get());
}

TEST_CASE("a worker's policy never goes back to weights before those that it has") {
  const auto policy = std::make_shared<ConstantPolicy>();
  OneWorker world({}, policy);
  const auto push = [&](std::uint64_t version) {
    world.driver
        ->call<env::PolicyFunction>("w0", "envs.policy", world.session, Bytes::allocate(1), version)
        .get();
  };
  push(5);
  push(3);
  CHECK(policy->version == 5);
  push(6);
  CHECK(policy->version == 6);
  const env::SessionId before = std::exchange(world.session, world.open().get().session);
  push(1);  // of another driver, which counts anew
  CHECK(policy->version == 1);
  world.session = before;
  CHECK_THROWS_WITH(push(7), Catch::Contains("opened again"));
  CHECK(policy->version == 1);
}

TEST_CASE("a worker whose environments are busy makes no room for what it is asked meanwhile") {
  OneWorker world({}, std::make_shared<ConstantPolicy>());
  world.reset().get();
  Future<env::StepReply> first = world.step(world.session, 0, 1, {1, 1});
  CHECK_THROWS_WITH(world.step(world.session, 0, 900'000, {}).get(),
                    Catch::Contains("being stepped"));
  CHECK(std::move(first).get().rewards.size() == 2);
  CHECK_THROWS_WITH(world.step(world.session, 0, 20'000'000, {}).get(),
                    Catch::Contains("one message can carry 1 to "));
}

TEST_CASE("a worker without a factory, a name or lanes is refused", "[threads]") {
  class NoLanes final : public Lanes {
   public:
    [[nodiscard]] std::size_t count() const noexcept override { return 0; }
    void run(std::shared_ptr<LaneTask> /*task*/) override {}
  };
  SimulatedWorld world;
  Node node(world.options("worker"));
  CHECK_THROWS_AS(EnvWorker(node, nullptr), InvalidArgument);
  CHECK_THROWS_AS(EnvWorker(node, counting_envs(), {.service = ""}), InvalidArgument);
  CHECK_THROWS_AS(EnvWorker(node, counting_envs(), {.lanes = std::make_shared<NoLanes>()}),
                  InvalidArgument);
  CHECK(exposed_functions(node).empty());
}

}  // namespace env_worker_test
}  // namespace batchrpc::test
