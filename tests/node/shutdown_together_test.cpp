// Members that end together: Node::shutdown_together().
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/group_end.hpp"
#include "node/node_core.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"
#include "signal.hpp"

namespace batchrpc::test {
namespace shutdown_together_test {

using namespace std::chrono_literals;

/// The part of shutdown_together() before shutdown().
Future<std::string> done(const Node& node) {
  return detail::NodeAccess::core(node)->group_end().done();
}

/// Three nodes, of which each counts the calls that it serves.
struct Trio {
  explicit Trio(std::uint64_t seed = 1) : world(seed) {
    world.network->set_link({.latency = 5ms, .jitter = 3ms});
    nodes.push_back(world.root("a"));
    for (const char* const name : {"b", "c"})
      nodes.push_back(world.join(name));
    for (Node& node : nodes) {
      node.wait_for_peer("c").get();
      node.expose("count", [this] { ++served; });
      node.expose("hop", [this, &node](int links) {
        ++served;
        if (links > 1) node.peer(next(node.name())).notify<void(int)>("hop", links - 1);
      });
    }
  }
  static std::string next(const std::string& name) {
    return name == "a" ? "b" : name == "b" ? "c" : "a";
  }
  [[nodiscard]] std::vector<std::string> end_all() {
    std::vector<Future<std::string>> over;
    for (const Node& node : nodes)
      over.push_back(done(node));
    return when_all(std::move(over)).get();
  }

  VirtualWorld world;
  int served = 0;
  std::vector<Node> nodes = [] {
    std::vector<Node> none;
    none.reserve(3);  // handlers refer to them
    return none;
  }();
};

const std::vector<std::string> kAllWell(3);

TEST_CASE("members that end together have served all notifications that were under way") {
  Trio trio;
  for (std::size_t i = 0; i < 400; ++i)
    trio.nodes[i % 2].peer(i % 2 == 0 ? "b" : "a").notify<void()>("count");
  CHECK(trio.end_all() == kAllWell);
  CHECK(trio.served == 400);
}

TEST_CASE("members that end together have served all links of chains through all of them") {
  Trio trio;
  trio.nodes[1].peer("c").notify<void(int)>("hop", 84);
  CHECK(trio.end_all() == kAllWell);
  CHECK(trio.served == 84);
}

TEST_CASE("a group ends at once when nothing is under way") {
  Trio trio;
  const Duration before = trio.world.time();
  CHECK(trio.end_all() == kAllWell);
  CHECK(trio.world.time() - before < 200ms);
}

TEST_CASE("a group ends whichever member is done first, and not before the last one") {
  const auto last = GENERATE(as<std::size_t>(), 0, 1, 2);
  Trio trio;
  std::vector<Future<std::string>> over;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != last) over.push_back(done(trio.nodes[i]));
  trio.world.run_for(1min);
  CHECK(std::none_of(over.begin(), over.end(), [](const auto& each) { return each.ready(); }));
  CHECK(trio.nodes[last].call<void()>("a", "count").wait_for(1s));
  over.push_back(done(trio.nodes[last]));
  CHECK(when_all(std::move(over)).get() == kAllWell);
}

TEST_CASE("a group does not end while a handler has not answered") {
  Trio trio;
  Promise<int> answer;
  trio.nodes[1].expose("wait", [&] { return answer.get_future(); });
  Future<int> waiting = trio.nodes[2].call<int()>("b", "wait");
  std::vector<Future<std::string>> over;
  for (const Node& node : trio.nodes)
    over.push_back(done(node));
  trio.world.run_for(10s);
  CHECK_FALSE(over[0].ready());
  CHECK_THAT(detail::NodeAccess::core(trio.nodes[0])->group_end().missing(),
             Catch::Contains("c were under way"));
  answer.set_value(5);
  CHECK(when_all(std::move(over)).get() == kAllWell);
  CHECK(waiting.ready());
}

TEST_CASE("the wait for the others ends at the timeout, and names those that it waited for") {
  VirtualWorld world;
  Node a = world.root("a");
  const Node b = world.join("b");
  CHECK(a.shutdown_together(2s) == std::vector<std::string>{"b did not call shutdown_together()"});
}

TEST_CASE("members that are lost, or leave in another way, are not waited for") {
  Trio trio;
  Future<std::string> a = done(trio.nodes[0]);
  Future<std::string> b = done(trio.nodes[1]);
  trio.world.run_for(1s);
  CHECK_FALSE(a.ready());
  if (GENERATE(false, true)) {
    trio.world.kill("c");
  } else {
    trio.nodes[2].shutdown(1s);
  }
  CHECK(std::move(a).get().empty());
  CHECK(std::move(b).get().empty());
}

TEST_CASE("a member does not wait for a root that is lost or leaves in another way") {
  Trio trio;
  Future<std::string> b = done(trio.nodes[1]);
  trio.world.run_for(1s);
  CHECK_FALSE(b.ready());
  trio.nodes[0].shutdown(1s);
  CHECK_THAT(std::move(b).get(), Catch::StartsWith("the root 'a' is lost (node a has shut down"));
  CHECK_THAT(done(trio.nodes[2]).get(), Catch::StartsWith("the root 'a' is lost"));
}

TEST_CASE("a node that has joined meanwhile is waited for, too") {
  Trio trio;
  std::vector<Future<std::string>> over;
  for (std::size_t i = 0; i < 2; ++i)
    over.push_back(done(trio.nodes[i]));
  const Node late = trio.world.join("d");
  over.push_back(done(trio.nodes[2]));
  trio.world.run_for(10s);
  CHECK_FALSE(over[0].ready());
  over.push_back(done(late));
  CHECK(when_all(std::move(over)).get() == std::vector<std::string>(4));
}

TEST_CASE("shutdown_together is not called while another call of it waits, nor by a handler",
          "[threads]") {
  RealPair pair;
  const Future<std::string> over = done(pair.a);
  CHECK_THROWS_AS(done(pair.a), InvalidArgument);
  pair.b.expose("end", [&pair] { pair.b.shutdown_together(); });
  const auto refused = outcome(pair.a.call<void()>("b", "end"));
  CHECK_THAT(refused.message(), Catch::Contains("would wait for itself"));
}

TEST_CASE("a node that is shut down while it waits for its group waits no longer") {
  VirtualWorld world;
  Node a = world.root("a");
  const Node b = world.join("b");
  Future<std::string> over = done(a);
  world.run_for(1s);
  CHECK_FALSE(over.ready());
  a.shutdown(1s);
  CHECK(std::move(over).get() == "the node was shut down");
}

TEST_CASE("a group ends over links that are slower than its pings") {
  VirtualWorld world;
  world.network->set_link({.latency = 50ms});
  const auto impatient = [](NodeOptions options) {
    options.liveness.ping_after = 20ms;
    options.liveness.dead_after = 5s;
    return options;
  };
  const Node a(impatient(world.options("a")));
  const Node b(impatient(world.joining("b")));
  std::vector<Future<std::string>> over;
  over.push_back(done(a));
  over.push_back(done(b));
  auto both = when_all(std::move(over));
  world.run_for(10s);
  REQUIRE(both.ready());
  CHECK(both.get() == std::vector<std::string>(2));
}

TEST_CASE("nodes of random programs end when all their notifications have run, also over cuts") {
  for_each_seed(1, 200, [](std::uint64_t seed) {
    Trio trio(seed);
    std::mt19937_64 random(seed);
    if (random() % 2 == 0)
      trio.world.network->set_link({.latency = 5ms, .jitter = 3ms, .break_every = 3000});
    int expected = 0;
    std::vector<Future<std::string>> over;
    for (std::size_t i = 0; i < 3; ++i) {
      for (auto calls = random() % 20; calls > 0; --calls) {
        const int links = 1 + static_cast<int>(random() % 10);
        trio.nodes[i].peer(Trio::next(trio.nodes[i].name())).notify<void(int)>("hop", links);
        expected += links;
      }
      over.push_back(done(trio.nodes[i]));
      trio.world.run_for(std::chrono::milliseconds(random() % 50));
    }
    CHECK(when_all(std::move(over)).get() == kAllWell);
    CHECK(trio.served == expected);
  });
}

TEST_CASE("nodes that shut down together over links that break all end well", "[threads]") {
  for_each_seed(1, 50, [](std::uint64_t seed) {
    SimulatedWorld world(seed);
    world.network().set_link({.latency = 5ms, .jitter = 3ms, .break_every = 10'000});
    std::atomic<int> served{0};
    std::vector<std::string> left;
    const auto live = [&](const NodeOptions& options, const std::string& next) {
      Node node(options);
      node.expose("count", [&] { ++served; });
      node.wait_for_peer(next).get();
      for (int i = 0; i < 200; ++i)
        node.peer(next).notify<void()>("count");
      for (std::string& each : node.shutdown_together())
        left.push_back(std::move(each));
    };
    world.spawn("a", [&] { live(world.options("a", {.world_size = 3}), "b"); });
    world.spawn("b", [&] { live(world.options("b", {.rank = 1, .world_size = 3}), "c"); });
    world.spawn("c", [&] { live(world.options("c", {.rank = 2, .world_size = 3}), "a"); });
    world.run();
    CHECK(left.empty());
    CHECK(served == 600);
  });
}

TEST_CASE("a worker that only serves calls exposes them and ends with its group", "[threads]") {
  Node root(real_root("root", 2));
  std::atomic<int> served{0};
  std::vector<std::string> left;  // by the worker
  std::thread worker([&] {
    NodeOptions options = real_joining(root, "worker", 2);
    options.expose_within = kPatience;
    Node node(options);
    node.expose("count", [&] { ++served; });
    left = node.shutdown_together();
  });
  root.wait_for_peer("worker").get();
  for (int i = 0; i < 400; ++i)
    root.peer("worker").notify<void()>("count");
  CHECK(root.shutdown_together().empty());
  worker.join();
  CHECK(left.empty());
  CHECK(served == 400);
}

}  // namespace shutdown_together_test
}  // namespace batchrpc::test
