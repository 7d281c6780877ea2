#include <batchrpc/batchrpc.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parameter_server/parameter_server.hpp"
#include "parameter_server/server_functions.hpp"

namespace batchrpc_examples {
namespace {

namespace rpc = batchrpc;
using namespace std::chrono_literals;

constexpr std::int64_t kElements = 10'000;

// A server, and trainers by their nodes, in one process.
class World {
 public:
  explicit World(ServerOptions options, ServerEvents events = {})
      : server_(std::make_shared<ParameterServer>(options, at::zeros({kElements}), kElements,
                                                  SgdOptions{.learning_rate = 1, .momentum = 0},
                                                  std::move(events))),
        root_(node("server0", 0)) {
    root_.on_membership([server = server_](const rpc::MembershipChange& change) {
      if (!change.joined) server->lose(change.peer.name);
    });
    expose(root_, server_);
  }

  [[nodiscard]] rpc::Node node(const std::string& name, int rank) const {
    return rpc::Node({.name = name,
                      .rank = rank,
                      .join = "inproc://parameters",
                      .log_level = rpc::LogLevel::off,
                      .network = network_});
  }
  [[nodiscard]] ParameterServer& server() { return *server_; }

 private:
  std::shared_ptr<rpc::InprocNetwork> network_ = rpc::InprocNetwork::make();
  std::shared_ptr<ParameterServer> server_;
  rpc::Node root_;
};

struct TestTrainer {
  TestTrainer(const World& world, int index, UpdateMode how = UpdateMode::batch)
      : node(world.node("trainer" + std::to_string(index), index + 1)),
        server(find_server(node, "server0")),
        mode(how) {}

  rpc::Future<void> update(const at::Tensor& gradient) {
    return update_and_fetch_model(server, mode, gradient, values);
  }
  rpc::Future<void> update(float gradient) { return update(at::full({kElements}, gradient)); }
  [[nodiscard]] bool has(float value) const { return values.eq(value).all().item<bool>(); }

  rpc::Node node;
  rpc::RRef<ParameterServer> server;
  UpdateMode mode;
  at::Tensor values = at::empty({kElements});
};

void join(const std::vector<TestTrainer*>& trainers) {
  std::vector<rpc::Future<TrainingStart>> joining;
  for (TestTrainer* trainer : trainers)
    joining.push_back(trainer->server.call<&ParameterServer::join>());
  for (auto& each : joining)
    CHECK(each.get().elements == kElements);
}

TEST_CASE("A server steps by the mean of all trainers' gradients, and answers all") {
  const UpdateMode mode = GENERATE(UpdateMode::batch, UpdateMode::sync);
  World world({.trainers = 2, .iterations = 3, .mode = mode});
  TestTrainer a(world, 0, mode);
  TestTrainer b(world, 1, mode);
  join({&a, &b});
  fetch_model(a.server, a.values).get();
  CHECK(a.has(0));
  for (int iteration = 1; iteration <= 3; ++iteration) {
    auto one = a.update(1);
    auto two = b.update(3);
    one.get();
    two.get();
    CHECK(a.has(static_cast<float>(-2 * iteration)));
    CHECK(b.has(static_cast<float>(-2 * iteration)));
  }
  CHECK_THROWS_WITH(a.update(1).get(), Catch::Contains("the training is over"));
  for (TestTrainer* trainer : {&a, &b})
    trainer->server.call<&ParameterServer::leave>().get();
  CHECK(world.server().group().over());
}

TEST_CASE("A gradient of another shape or type fails alone, and the iteration goes on") {
  const UpdateMode mode = GENERATE(UpdateMode::batch, UpdateMode::sync);
  World world({.trainers = 2, .mode = mode});
  TestTrainer a(world, 0, mode);
  TestTrainer b(world, 1, mode);
  join({&a, &b});
  auto one = a.update(1);
  const std::string expected = "expected a gradient float32 [10000], got ";
  CHECK_THROWS_WITH(b.update(at::ones({kElements - 1})).get(),
                    Catch::Contains(expected + "float32 [9999]"));
  CHECK_THROWS_WITH(b.update(at::ones({2, kElements / 2})).get(),
                    Catch::Contains(expected + "float32 [2, 5000]"));
  CHECK_THROWS_WITH(b.update(at::ones({kElements}, at::kDouble)).get(),
                    Catch::Contains(expected + "float64 [10000]"));
  CHECK_THROWS_WITH(b.update(at::Tensor()).get(), Catch::Contains("an undefined tensor"));
  auto two = b.update(3);
  one.get();
  two.get();
  CHECK(a.has(-2));
}

TEST_CASE("A gradient of NaN is refused when asked to, and changes nothing") {
  World world({.trainers = 2, .sum = {.refuse_nan = true}});
  TestTrainer a(world, 0);
  TestTrainer b(world, 1);
  join({&a, &b});
  at::Tensor bad = at::ones({kElements});
  bad[kElements / 2] =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  auto refused = b.update(bad);
  auto one = a.update(1);
  CHECK_THROWS_WITH(refused.get(), Catch::Contains("NaN or infinity"));
  if (!one.wait_for(1s)) b.update(3).get();
  one.get();
  CHECK(a.values.isfinite().all().item<bool>());
}

TEST_CASE("A trainer that is lost is not waited for, nor counted") {
  const UpdateMode mode = GENERATE(UpdateMode::batch, UpdateMode::sync);
  World world({.trainers = 3, .mode = mode});
  TestTrainer a(world, 0, mode);
  TestTrainer b(world, 1, mode);
  std::optional<TestTrainer> c(std::in_place, world, 2, mode);
  join({&a, &b, &*c});
  auto one = a.update(1);
  auto two = b.update(3);
  CHECK_FALSE(one.wait_for(50ms));
  c.reset();
  one.get();
  two.get();
  CHECK(a.has(-2));
  CHECK(b.has(-2));
}

TEST_CASE("A trainer that comes late is in the next iteration") {
  World world({.trainers = 1});
  TestTrainer a(world, 0);
  join({&a});
  TestTrainer b(world, 1);
  auto joining = b.server.call<&ParameterServer::join>();
  CHECK_FALSE(joining.wait_for(50ms));
  CHECK_THROWS_WITH(b.update(1).get(), Catch::Contains("not in the training"));
  a.update(1).get();
  CHECK(joining.get().iteration == 1);
  auto one = a.update(1);
  CHECK_FALSE(one.wait_for(50ms));
  b.update(3).get();
  one.get();
  CHECK(a.has(-3));
}

TEST_CASE("In asynchronous training each gradient is a step, and its staleness is known") {
  std::mutex mutex;
  std::vector<std::int64_t> staleness;
  ServerEvents events;
  events.updated = [&](const UpdateReport& update) {
    const std::lock_guard lock(mutex);
    staleness.push_back(update.staleness);
  };
  World world({.trainers = 2, .mode = UpdateMode::async}, events);
  TestTrainer a(world, 0, UpdateMode::async);
  TestTrainer b(world, 1, UpdateMode::async);
  join({&a, &b});
  a.update(1).get();
  CHECK(a.has(-1));
  a.update(1).get();
  b.update(3).get();
  CHECK(b.has(-5));
  const std::lock_guard lock(mutex);
  CHECK(staleness == std::vector<std::int64_t>{0, 0, 2});
}

TEST_CASE("Gradients are added in the order of ranks when asked to") {
  World world({.trainers = 3, .in_order_of_ranks = true});
  TestTrainer a(world, 0);
  TestTrainer b(world, 1);
  TestTrainer c(world, 2);
  join({&a, &b, &c});
  const float big = 1e8F;  // (1e8 + 1) - 1e8 is 0 in float32, (1e8 - 1e8) + 1 is 1
  auto three = c.update(-big);
  auto two = b.update(1);
  auto one = a.update(big);
  one.get();
  two.get();
  three.get();
  CHECK(a.has(0));
}

}  // namespace
}  // namespace batchrpc_examples
