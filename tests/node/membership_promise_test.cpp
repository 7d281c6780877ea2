// Who comes, goes and comes again, the root too: promise 9 of docs/reliability.md.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "long_tests.hpp"
#include "node/membership_group.hpp"
#include "node/raw_peer.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc {
namespace membership_promise_test {

using namespace std::chrono_literals;
using membership_promise::add;
using test::alternate;
using test::Event;
using test::Events;
using test::is_part_of;
using test::names_of;
using test::Observer;
using test::outcome;
using test::Processes;
using test::text;
using test::VirtualWorld;

TEST_CASE("promise 9: all are told of the joins and losses of each peer in the same order") {
  const std::vector<std::string> names{"a", "b", "c", "d"};
  std::size_t losses = 0;
  const int seeds = test::times_on_one_thread(300, 3000);
  for (int seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    Processes group(static_cast<std::uint64_t>(seed));
    Observer& root = group.start_root();
    Observer& first = group.start_member("first");
    Observer& second = group.start_member("second");
    for (int step = 0; step < 20; ++step) {
      const std::string& name = names[group.random() % names.size()];
      if (!group.has(name)) {
        group.start_member(name);  // at once after a death, too
        if (group.one_in(2)) {
          CHECK(group.at(name).node.call<&add>("first", step, 1).get() == step + 1);
        }
      } else if (group.one_in(3)) {
        (void)outcome(first.node.call<&add>(name, step, 2));  // perhaps before the news have come
      } else if (group.one_in(2)) {
        group.kill(name);
      } else {
        group.end(name);
      }
      if (group.one_in(2)) group.world.run_for(group.random_time(2s));
    }
    group.world.run_for(10s);
    for (const std::string& name : names) {
      const auto& at_root = (*root.events)[name];
      INFO(name << ": the root was told" << text(at_root) << ", first"
                << text((*first.events)[name]) << ", second" << text((*second.events)[name]));
      CHECK(alternate(at_root));
      CHECK((*first.events)[name] == at_root);
      CHECK((*second.events)[name] == at_root);
      CHECK((!at_root.empty() && at_root.back().joined) == group.has(name));
      losses += at_root.size() / 2;
      for (const auto& [observer, process] : group.observers) {
        INFO(observer << " was told" << text((*process->events)[name]));
        CHECK(is_part_of((*process->events)[name], at_root));
      }
    }
    CHECK((*root.events)["first"].size() == 1);
  }
  CHECK(losses > 3 * static_cast<std::size_t>(seeds));
}

TEST_CASE("promise 9: a restarted node of the same name is reachable at once") {
  for (int seed = 1; seed <= test::times_on_one_thread(100, 1000); ++seed) {
    INFO("seed " << seed);
    Processes group(static_cast<std::uint64_t>(seed));
    const Observer& root = group.start_root();
    const Observer& first = group.start_member("first");
    group.start_member("a");
    std::uint64_t before = 0;
    for (int round = 0; round < 3; ++round) {
      first.node.wait_for_peer("a").get();
      CHECK(first.node.call<&add>("a", round, 1).get() == round + 1);
      group.kill("a");
      const Duration killed = group.world.time();
      group.start_member("a");
      const PeerInfo again = root.node.wait_for_peer("a").get();
      CHECK(again.incarnation != before);
      before = again.incarnation;
      CHECK(root.node.call<&add>("a", round, 2).get() == round + 2);
      // It calls whom it likes, also who has not heard yet of its former self's end.
      CHECK(group.at("a").node.call<&add>("first", round, 3).get() == round + 3);
      first.node.wait_for_peer("a").get();
      CHECK(first.node.call<&add>("a", round, 4).get() == round + 4);
      CHECK(group.world.time() - killed < 1s);
    }
  }
}

TEST_CASE(
    "promise 9: while the root is dead members go on, and joins wait, and a new one is found") {
  for (int seed = 1; seed <= test::times_on_one_thread(200, 2000); ++seed) {
    INFO("seed " << seed);
    Processes group(static_cast<std::uint64_t>(seed));
    const VirtualWorld& world = group.world;
    group.start_root();
    const std::vector<std::string> names{"a", "b", "c"};
    for (const std::string& name : names)
      group.start_member(name);
    world.run_for(100ms);  // the news have come
    std::map<std::string, int> ranks;
    for (const std::string& name : names)
      ranks[name] = group.at(name).node.rank();
    const bool called = group.one_in(2);
    if (called) {
      CHECK(group.at("a").node.call<&add>("c", 1, 1).get() == 2);
    }
    world.run_for(group.random_time(3s));

    const bool silently = group.one_in(2);
    if (silently) world.network->isolate("root");
    group.kill("root");
    if (silently) world.network->rejoin("root");
    world.run_for(group.random_time(1s));
    CHECK(group.at("a").node.call<&add>("b", 1, 2).get() == 3);
    CHECK(group.at("b").node.call<&add>("a", 2, 2).get() == 4);
    auto joining = Node::start(world.joining("d"));
    // One dies that others may have no connection to.
    const bool one_dies = group.one_in(2);
    if (one_dies) group.kill("c");
    world.run_for(group.random_time(20s));
    CHECK_FALSE(joining.ready());

    const Duration restarted = world.time();
    const Node& root = group.start_root().node;
    const Node d = std::move(joining).get();
    CHECK(world.time() - restarted < 2s);
    for (const std::string& name : names) {
      if (name == "c" && one_dies) continue;
      root.wait_for_peer(name, 10s).get();
      CHECK(world.time() - restarted < 8s);  // where a member had yet to notice: 5 s
      CHECK(root.call<&add>(name, 3, 4).get() == 7);
      CHECK(group.at(name).node.call<&add>("root", 4, 5).get() == 9);
    }
    world.run_for(20s);
    std::vector<std::string> expected{"a", "b", "c", "d", "root"};
    if (one_dies) std::erase(expected, "c");
    for (const std::string& name : names) {
      if (!group.has(name)) continue;
      INFO("at " << name);
      const int rank = group.at(name).node.rank();
      if (rank != ranks[name]) CHECK(d.rank() == ranks[name]);  // the root has chosen it for d
      CHECK(root.call<&add>(rank, 1, 2).get() == 3);
      auto& events = *group.at(name).events;
      CHECK(alternate(events["root"]));
      REQUIRE(events["root"].size() == 2);
      CHECK(events["root"].back().joined);
      CHECK(events["d"].size() == 1);
      std::vector<std::string> alive{name};
      for (const PeerInfo& peer : group.at(name).node.peers()) {
        if (peer.state != PeerState::lost) alive.push_back(peer.name);
      }
      std::sort(alive.begin(), alive.end());
      CHECK(alive == expected);
    }
    // Who joins now is told of all.
    const Node last = world.join("e");
    std::erase(expected, "e");
    CHECK(names_of(last) == expected);
  }
}

TEST_CASE("promise 9: a root that dies again while its members come back is not forgotten") {
  for (int seed = 1; seed <= test::times_on_one_thread(60, 600); ++seed) {
    INFO("seed " << seed);
    Processes group(static_cast<std::uint64_t>(seed));
    group.start_root();
    const Node& a = group.start_member("a").node;
    group.world.run_for(100ms);
    group.kill("root");
    group.world.run_for(1s);
    group.start_root();
    group.world.run_for(group.random_time(1500ms));
    group.kill("root");
    group.world.run_for(group.random_time(100ms));
    const auto result = outcome(a.call<&add>("root", 1, 2));
    CHECK((result.code() == ErrorCode::not_sent || result.code() == ErrorCode::peer_lost));
    CHECK(names_of(a) == std::vector<std::string>{"root"});
    group.start_root();
    group.world.run_for(5s);
    CHECK(a.call<&add>("root", 1, 2).get() == 3);
  }
}

TEST_CASE("promise 9: members that live are not told to be lost when the root is restarted") {
  for (int seed = 1; seed <= test::times_on_one_thread(20, 200); ++seed) {
    INFO("seed " << seed);
    Processes group(static_cast<std::uint64_t>(seed));
    group.start_root();
    for (const char* const name : {"a", "b", "c"})  // which do not call each other
      group.start_member(name);
    group.world.run_for(1s);
    group.kill("root");
    group.world.run_for(2s);
    group.kill("c");
    group.start_root();
    group.world.run_for(30s);
    for (const std::string name : {"a", "b"}) {
      for (const Event& event : (*group.at(name).events)[name == "a" ? "b" : "a"])
        CHECK(event.joined);
      const auto& of_dead = (*group.at(name).events)["c"];
      REQUIRE_FALSE(of_dead.empty());
      CHECK_FALSE(of_dead.back().joined);
      CHECK(alternate(of_dead));
    }
    CHECK(group.at("a").node.call<&add>("b", 1, 2).get() == 3);
  }
}

TEST_CASE("promise 9: a root that was only cut off is found again, and nobody is told otherwise") {
  Processes group(1);
  const Node& root = group.start_root().node;
  group.start_member("a");
  group.start_member("b");
  group.world.run_for(100ms);
  group.world.network->partition("a", "root");
  group.world.run_for(30s);
  CHECK(group.at("a").node.peers().at(1).state == PeerState::lost);
  CHECK(group.at("a").node.call<&add>("b", 1, 2).get() == 3);
  group.world.network->heal("a", "root");
  group.world.run_for(3s);
  CHECK(root.call<&add>("a", 1, 2).get() == 3);
  const auto& events = (*group.at("a").events)["root"];
  REQUIRE(events.size() == 2);
  CHECK(events[0].incarnation == events[1].incarnation);
  CHECK(events[1].joined);
  CHECK(alternate((*group.at("b").events)["a"]));
  CHECK(group.world.log.contain("the root is back"));
}

TEST_CASE("promise 9: a fixed world is complete again when its members have found the new root") {
  Processes group(3);
  const auto options = [&](const std::string& name, int rank) {
    NodeOptions node = group.world.options(name);
    node.rank = rank;
    node.world_size = 3;
    node.shutdown_timeout = Duration::zero();
    return node;
  };
  auto root = Node::start(options("root", 0));
  auto one = Node::start(options("one", 1));
  auto two = Node::start(options("two", 2));
  std::optional<Node> first = std::move(root).get();
  const Node second = std::move(one).get();
  const Node third = std::move(two).get();
  third.expose<&add>();
  group.world.network->kill("root");
  first.reset();
  group.world.run_for(10s);
  CHECK(second.call<&add>("two", 1, 2).get() == 3);
  const Node again{options("root", 0)};
  CHECK(again.peers().size() == 2);
  CHECK(again.call<&add>(2, 1, 2).get() == 3);
}

TEST_CASE("promise 9: a root that dies while others wait to join is replaced, and they wait on") {
  Processes group(5);
  const auto options = [&](const std::string& name, int rank) {
    NodeOptions node = group.world.options(name);
    node.rank = rank;
    node.world_size = 3;
    node.shutdown_timeout = Duration::zero();
    return node;
  };
  auto early = Node::start(options("one", 1));
  const auto dying = Node::start(options("root", 0));
  group.world.run_for(1s);
  group.world.kill("root");
  group.world.run_for(10s);
  CHECK_FALSE(early.ready());
  auto root = Node::start(options("another root", 0));
  auto two = Node::start(options("two", 2));
  group.world.run_for(5s);
  REQUIRE(early.ready());
  REQUIRE(two.ready());
  REQUIRE(root.ready());
  CHECK(std::move(root).get().peers().size() == 2);
  group.world.run_for(60s);
  CHECK(dying.ready());  // it has given up, cut off as it was
}

TEST_CASE(
    "promise 9: who does not answer gives its name to the node that is started in its place") {
  VirtualWorld world;
  const Node root = world.root();
  test::RawPeer silent(world);
  silent.say_hello("b", 7);
  world.run_for(10ms);
  auto starting = Node::start(world.joining("b"));
  world.run_for(500ms);
  CHECK_FALSE(starting.ready());  // it may live
  world.run_for(3s);              // but has not answered two pings, of one a second
  REQUIRE(starting.ready());
  const Node b = std::move(starting).get();
  b.expose<&add>();
  CHECK(root.call<&add>("b", 1, 2).get() == 3);
  CHECK(silent.closed());
  // Should it wake up again, it is told.
  test::RawPeer awake(world);
  awake.say_hello("b", 7);
  const auto goodbye = awake.frame(wire::FrameKind::goodbye);
  REQUIRE(goodbye);
  CHECK_THAT(wire::read_goodbye(wire::parse_frame(*goodbye)).reason,
             Catch::Contains("'b' was taken over by another node"));
  CHECK(root.call<&add>("b", 1, 2).get() == 3);
}

TEST_CASE("promise 9: a name whose holder lives is refused, however busy the holder is") {
  VirtualWorld world;
  const Node root = world.root();
  const Node holder = world.join("worker");
  world.run_for(1h);
  const auto second = outcome(Node::start(world.joining("worker")));
  CHECK(second.code() == ErrorCode::join_failed);
  CHECK_THAT(second.message(), Catch::Contains("the name 'worker' is taken"));
  root.expose<&add>();
  CHECK(holder.call<&add>("root", 1, 2).get() == 3);
}

}  // namespace membership_promise_test
}  // namespace batchrpc
