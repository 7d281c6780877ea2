// Nodes in a SimulatedWorld: faults of hosts, and the trace.
#include "batchrpc/testing/simulated_world.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/node.hpp"

namespace batchrpc::test {

static int doubled(int x) { return 2 * x; }

namespace simulated_world_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("nodes of a simulated world find and call each other") {
  SimulatedWorld world;
  const Node server(world.options("server"));
  const Node client(world.options("client"));
  CHECK(server.rank() == 0);
  CHECK(client.rank() == 1);
  server.expose<&doubled>();
  CHECK(client.call<&doubled>("server", 21).get() == 42);
  CHECK(world.time() == Duration::zero());
  world.run_for(seconds(3));
  CHECK(world.time() == seconds(3));
}

TEST_CASE("a paused host answers when it goes on") {
  SimulatedWorld world;
  NodeOptions patient;
  patient.liveness.dead_after = std::chrono::minutes(10);
  const Node server(world.options("server", patient));
  const Node client(world.options("client", patient));
  server.expose<&doubled>();
  world.pause("server");
  const auto answer = client.call<&doubled>("server", 1);
  world.run_for(seconds(20));
  CHECK_FALSE(answer.ready());
  world.resume("server");
  CHECK(answer.get() == 2);
  CHECK(world.time() == seconds(20));
}

TEST_CASE("a killed host is lost at once, and reachable when it was started again") {
  SimulatedWorld world;
  const Node client(world.options("client"));
  for (int life = 1; life <= 3; ++life) {
    const Node server(world.options("server"));
    server.expose("life", [life] { return life; });
    client.wait_for_peer("server").get();
    CHECK(client.call<int()>("server", "life").get() == life);
    int ticks = 0;
    server.expose("tick", [&] { return ++ticks; });
    client.peer("server").notify<int()>("tick");
    world.kill("server");
    const Duration before = world.time();
    CHECK_THROWS_AS(client.call<int()>("server", "life").get(), PeerLost);
    CHECK(world.time() - before < milliseconds(100));
    world.run_for(seconds(10));
    CHECK(ticks == 0);
  }
}

TEST_CASE("a host that loses its power is found dead by its silence") {
  SimulatedWorld world;
  const Node client(world.options("client"));
  std::optional<Node> server(world.options("server"));
  server->expose<&doubled>();
  CHECK(client.call<&doubled>("server", 1).get() == 2);
  std::optional<Duration> lost;
  client.on_membership([&](const MembershipChange& change) {
    if (!change.joined) lost = world.time();
  });
  world.power_off("server");
  world.run_for(seconds(20));
  REQUIRE(lost);
  CHECK(*lost > seconds(4));
  CHECK(*lost <= seconds(7));
  server.reset();

  const Node again(world.options("server"));
  again.expose<&doubled>();
  CHECK(client.call<&doubled>("server", 2).get() == 4);
}

TEST_CASE("the root may be killed and started again at its address") {
  SimulatedWorld world;
  {
    const Node root(world.options("root"));
    world.kill("root");
  }
  const Node root(world.options("root"));
  CHECK(root.rank() == 0);
  const Node other(world.options("other"));
  other.expose<&doubled>();
  CHECK(root.call<&doubled>("other", 4).get() == 8);
}

TEST_CASE("a host that was never named, and a node of another name, are refused") {
  SimulatedWorld world(1);
  const Node a(world.options("a"));
  CHECK_THROWS_WITH(world.kill("A"),
                    Catch::Contains("has no host 'A'") && Catch::EndsWith("its hosts are: a"));
  CHECK_THROWS_AS(world.power_off("A"), InvalidArgument);
  CHECK_THROWS_AS(world.pause("A"), InvalidArgument);
  CHECK_THROWS_AS(world.resume("A"), InvalidArgument);
  CHECK_THROWS_WITH(world.options("a", {.name = "b"}), Catch::Contains("options(\"b\")"));
  CHECK(world.options("b", {.name = "b"}).name == "b");
}

TEST_CASE("a wait for a node whose host was killed ends, and says why") {
  SimulatedWorld world(1);
  const Node a(world.options("a"));
  const Node b(world.options("b"));
  world.kill("b");
  auto call = b.peer("a").with({.timeout = std::chrono::seconds(5)}).call<int()>("f");
  CHECK_THROWS_WITH(std::move(call).get(), Catch::Contains("killed or paused"));
}

TEST_CASE("clocks that differ do not matter to nodes") {
  SimulatedWorld world;
  world.set_clock("ahead", {.offset = std::chrono::hours(100), .drift = 1e-3});
  world.set_clock("behind", {.offset = -seconds(3000), .drift = -1e-3});
  const Node root(world.options("root"));
  const Node ahead(world.options("ahead"));
  const Node behind(world.options("behind"));
  ahead.expose<&doubled>();
  behind.expose<&doubled>();
  for (int minute = 0; minute < 30; ++minute) {
    CHECK(root.call<&doubled>("ahead", 1).get() == 2);
    CHECK(ahead.call<&doubled>("behind", 1).get() == 2);
    CHECK(behind.call<&doubled>("ahead", 1).get() == 2);
    world.run_for(std::chrono::minutes(1));
  }
}

TEST_CASE("a fault may be set for later") {
  SimulatedWorld world;
  const Node server(world.options("server"));
  const Node client(world.options("client"));
  Promise<int> forever;
  server.expose("wait", [&] { return forever.get_future(); });
  world.after(seconds(2), [&] { world.kill("server"); });
  CHECK_THROWS_AS(client.call<int()>("server", "wait").get(), PeerLost);
  CHECK(world.time() >= seconds(2));
  CHECK(world.time() < seconds(3));
}

/// A program with faults of every kind.
std::string traced(std::uint64_t seed) {
  std::ostringstream trace;
  {
    SimulatedWorld world(seed);
    world.trace(trace);
    LinkOptions link{.latency = milliseconds(1),
                     .jitter = milliseconds(1),
                     .jitter_shape = JitterShape::log_normal,
                     .bandwidth = 10'000'000};
    world.network().set_link(link);
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < 4; ++i) {
      nodes.push_back(std::make_unique<Node>(world.options("node" + std::to_string(i))));
      nodes.back()->expose<&doubled>();
      nodes.back()->expose("echo", [](const std::string& text) { return text; });
    }
    link.break_every = 20'000;  // of connections from now on
    world.network().set_link(link);
    std::vector<Future<std::string>> answers;
    for (int round = 0; round < 60; ++round) {
      const std::size_t from = world.random()() % nodes.size();
      const std::string to = "node" + std::to_string(world.random()() % nodes.size());
      answers.push_back(nodes[from]->call<std::string(std::string)>(
          to, "echo", std::string(world.random()() % 3000, 'x')));
      world.run_for(milliseconds(world.random()() % 5));
      if (round == 20) world.network().partition_one_way("node1", "node2");
      if (round == 30) world.network().heal("node1", "node2");
      if (round == 35) world.network().cut("node0", "node3");
      if (round == 40) world.pause("node2");
      if (round == 45) world.resume("node2");
    }
    link.break_every = 0;
    world.network().set_link(link);
    world.kill("node3");
    nodes[3] = std::make_unique<Node>(world.options("node3"));
    world.run_for(seconds(10));
    nodes.clear();
  }
  return trace.str();
}

TEST_CASE("the same seed gives the same trace, byte for byte, and another seed another one") {
  const std::string trace = traced(1);
  CHECK(trace.size() > 10'000);
  for (const char* const event :
       {"connects to", "reads", "breaks after", "loses", "partition from node1 to node2", "heal",
        "is cut", "pause node2", "resume node2", "kill node3", "start node3 again", "closes"}) {
    INFO(event);
    CHECK(trace.find(event) != std::string::npos);
  }
  const bool same = traced(1) == trace;
  CHECK(same);
  for (std::uint64_t seed = 2; seed < 5; ++seed) {
    const std::string other = traced(seed);
    const bool differs = other != trace;
    CHECK(differs);
    const bool repeats = traced(seed) == other;
    CHECK(repeats);
  }
}

}  // namespace simulated_world_test
}  // namespace batchrpc::test
