#include <batchrpc/batchrpc.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parameter_server/parameter_server.hpp"
#include "parameter_server/server_functions.hpp"

namespace batchrpc_examples {
namespace parameter_server_update_test {

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
      if (!change.joined) {
        server->lose({change.peer.name, change.peer.rank, change.peer.incarnation});
      }
    });
    expose(root_, server_);
  }

  [[nodiscard]] rpc::Node node(const std::string& name, int rank) const {
    return rpc::Node({.name = name,
                      .rank = rank,
                      .join = "inproc://parameters",
                      .transports = {rpc::inproc_transport(network_)},
                      .logging = {.level = rpc::LogLevel::off}});
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
  CHECK_THROWS_WITH(b.update(bad).get(), Catch::Contains("NaN or infinity"));
  auto one = a.update(1);
  b.update(3).get();
  one.get();
  CHECK(a.has(-2));
  CHECK(b.has(-2));
}

TEST_CASE("NaN is found wherever it is in a gradient") {
  constexpr std::int64_t kMany = 200'000;
  GradientSum sum(kMany, {.refuse_nan = true},
                  [](const GradientTotal& total, const rpc::BatchInfo&) { return total.sum; });
  sum.begin();
  const at::Tensor good = at::full({kMany}, 1e30F);
  sum.accumulate(good);
  for (const std::int64_t place : {0, 65'535, 65'536, 199'999}) {
    at::Tensor bad = good.clone();
    bad[place] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_AS(sum.accumulate(bad), rpc::InvalidArgument);
  }
  CHECK(at::equal(sum.finish({}), good));
}

TEST_CASE("Each mode has its own call") {
  World by_hand({.trainers = 1, .mode = UpdateMode::sync});
  TestTrainer a(by_hand, 0, UpdateMode::batch);
  join({&a});
  CHECK_THROWS_WITH(a.update(1).get(), Catch::Contains("mode sync"));
  World batch({.trainers = 1, .mode = GENERATE(UpdateMode::batch, UpdateMode::async)});
  TestTrainer b(batch, 0, UpdateMode::sync);
  CHECK(b.server.call<&ParameterServer::join>().get().mode != UpdateMode::sync);
  CHECK_THROWS_WITH(b.update(1).get(), Catch::Contains("mode sync"));
}

TEST_CASE("An update that throws fails the calls of all, and may be tried again") {
  const UpdateMode mode = GENERATE(UpdateMode::batch, UpdateMode::sync);
  ServerEvents events;
  events.checkpoint = [left = std::make_shared<int>(1)](const UpdateReport&, SharedModel&) {
    if ((*left)-- > 0) throw std::runtime_error("no paper");
  };
  World world({.trainers = 2, .mode = mode}, events);
  TestTrainer a(world, 0, mode);
  TestTrainer b(world, 1, mode);
  join({&a, &b});
  for (const bool fails : {true, false}) {
    auto one = a.update(1);
    auto two = b.update(3);
    for (auto* update : {&one, &two}) {
      if (fails) {
        CHECK_THROWS_WITH(update->get(), Catch::Contains("no paper"));
      } else {
        update->get();
      }
    }
  }
  CHECK(world.server().group().iteration() == 1);
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

TEST_CASE("Gradients of trainers that are all gone are not those of who comes in their place") {
  const UpdateMode mode = GENERATE(UpdateMode::batch, UpdateMode::sync);
  World world({.trainers = 2, .mode = mode});
  std::optional<TestTrainer> a(std::in_place, world, 0, mode);
  std::optional<TestTrainer> b(std::in_place, world, 1, mode);
  join({&*a, &*b});
  {
    const auto one = a->update(1);
    CHECK_FALSE(one.wait_for(50ms));
    a.reset();
  }
  TestTrainer again(world, 0, mode);
  auto joining = again.server.call<&ParameterServer::join>();
  CHECK_FALSE(joining.wait_for(50ms));
  b.reset();
  CHECK(joining.get().iteration == 0);
  CHECK(world.server().group().iteration() == 0);
  again.update(3).get();
  CHECK(again.has(-3));
  CHECK(world.server().group().iteration() == 1);
}

TEST_CASE("A trainer that was lost before it says why it ends has not failed, too") {
  std::vector<std::string> failed;
  ServerEvents events;
  events.failed = [&](const std::string& name, const std::string&) { failed.push_back(name); };
  World world({.trainers = 2}, events);
  TestTrainer a(world, 0);
  TestTrainer b(world, 1);
  join({&a, &b});
  const auto members = world.server().group().members();
  CHECK(world.server().lose(members.back()));
  CHECK_THROWS_WITH(b.update(1).get(), Catch::Contains("it must join first"));
  for (TestTrainer* trainer : {&b, &a})
    trainer->server.call<&ParameterServer::fail>("why").get();
  CHECK(failed == std::vector<std::string>{"trainer0"});
}

TEST_CASE("A trainer that comes late is told of, with the number of all") {
  std::vector<std::string> joined;
  ServerEvents events;
  events.joined = [&](const rpc::PeerIdentity& trainer, std::size_t all) {
    joined.push_back(trainer.name + " " + std::to_string(all));
  };
  World world({.trainers = 1, .mode = UpdateMode::async}, events);
  TestTrainer a(world, 0, UpdateMode::async);
  join({&a});
  CHECK(joined.empty());
  TestTrainer b(world, 1, UpdateMode::async);
  join({&b});
  CHECK(joined == std::vector<std::string>{"trainer1 2"});
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

// What is told of each update: trainer's iteration, those that all have finished, staleness.
struct Updates {
  ServerEvents events() {
    ServerEvents events;
    events.updated = [this](const UpdateReport& update) {
      const std::lock_guard lock(mutex);
      all.push_back({update.iteration, update.finished, update.staleness});
    };
    events.checkpoint = [this](const UpdateReport& update, SharedModel&) {
      const std::lock_guard lock(mutex);
      checkpoints.push_back(update.finished);
    };
    return events;
  }
  std::mutex mutex;
  std::vector<std::vector<std::int64_t>> all;
  std::vector<std::int64_t> checkpoints;
};

TEST_CASE("In asynchronous training each gradient is a step, and its staleness is known") {
  Updates updates;
  World world({.trainers = 2, .mode = UpdateMode::async}, updates.events());
  TestTrainer a(world, 0, UpdateMode::async);
  TestTrainer b(world, 1, UpdateMode::async);
  join({&a, &b});
  a.update(1).get();
  CHECK(a.has(-1));
  a.update(1).get();
  b.update(3).get();
  CHECK(b.has(-5));
  const std::lock_guard lock(updates.mutex);
  CHECK(updates.all == std::vector<std::vector<std::int64_t>>{{0, 0, 0}, {1, 0, 0}, {0, 1, 2}});
  CHECK(updates.checkpoints == std::vector<std::int64_t>{1});
}

TEST_CASE("In asynchronous training an iteration is over when all who are left have had it") {
  Updates updates;
  World world({.trainers = 2, .iterations = 3, .mode = UpdateMode::async}, updates.events());
  TestTrainer a(world, 0, UpdateMode::async);
  std::optional<TestTrainer> b(std::in_place, world, 1, UpdateMode::async);
  join({&a, &*b});
  a.update(1).get();
  b->update(1).get();
  a.update(1).get();
  CHECK(world.server().group().iteration() == 1);
  b.reset();
  while (world.server().group().members().size() > 1)
    std::this_thread::yield();
  SECTION("a trainer that comes late begins there") {
    TestTrainer c(world, 2, UpdateMode::async);
    CHECK(c.server.call<&ParameterServer::join>().get().iteration == 2);
    c.update(1).get();
    const std::lock_guard lock(updates.mutex);
    CHECK(updates.all.back() == std::vector<std::int64_t>{2, 2, 0});
  }
  SECTION("the training, too") {
    a.update(1).get();
    CHECK_THROWS_WITH(a.update(1).get(), Catch::Contains("the training is over"));
    const std::lock_guard lock(updates.mutex);
    CHECK(updates.all.back() == std::vector<std::int64_t>{2, 3, 0});
  }
}

TEST_CASE("An asynchronous training whose trainers are all lost has not finished") {
  World world({.trainers = 1, .iterations = 3, .mode = UpdateMode::async});
  {
    TestTrainer a(world, 0, UpdateMode::async);
    join({&a});
    a.update(1).get();
  }
  while (!world.server().group().over())
    std::this_thread::yield();
  CHECK(world.server().group().iteration() == 1);
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

}  // namespace parameter_server_update_test
}  // namespace batchrpc_examples
