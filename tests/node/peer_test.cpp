#include "batchrpc/node/peer.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace peering {
int add(int a, int b) { return a + b; }
}  // namespace peering

namespace batchrpc {
namespace peer_test {

using namespace std::chrono_literals;
using test::outcome;

using Pair = test::NodePair;

// Exposes a function that never answers.
void expose_never(const Node& node, std::vector<Promise<void>>& open) {
  node.expose("never", [&open] { return open.emplace_back().get_future(); });
}

TEST_CASE("a handle of a peer calls by function and by name, and keeps the peer's name itself") {
  const Pair pair;
  pair.b.expose<&peering::add>();
  std::optional<std::string> name("b");
  const Peer b = pair.a.peer(*name);
  *name = "nobody";
  name.reset();
  CHECK(b.call<&peering::add>(1, 2).get() == 3);
  CHECK(b.call<int(int, int)>("peering::add", 3, 4).get() == 7);
  CHECK(pair.a.peer(pair.b.rank()).call<&peering::add>(1, 2).get() == 3);
  CHECK(pair.a.peer(pair.a.peers().at(0)).call<&peering::add>(1, 2).get() == 3);
}

TEST_CASE("a handle names a peer that does not exist in the error of its calls, not before") {
  const Pair pair;
  CHECK(outcome(pair.a.peer("nobody").call<&peering::add>(1, 2)).code() == ErrorCode::not_found);
  CHECK(outcome(pair.a.peer("").call<&peering::add>(1, 2)).code() == ErrorCode::not_found);
  CHECK_THAT(outcome(pair.a.peer(-5).call<&peering::add>(1, 2)).message(),
             Catch::Contains("no peer has the rank -5"));
  CHECK_THROWS_AS(pair.a.peer("nobody").notify<&peering::add>(1, 2), NotFound);
  CHECK(outcome(pair.a.peer("nobody").wait_for_credit(1)).code() == ErrorCode::not_found);
}

TEST_CASE("the options of a handle hold for each of its calls, and with() leaves it as it was") {
  const Pair pair;
  std::vector<Promise<void>> open;
  expose_never(pair.b, open);
  const Peer patient = pair.a.peer("b");
  const Peer hasty = patient.with({.timeout = 2s});
  auto first = hasty.call<void()>("never");
  auto second = hasty.call<void()>("never");
  auto third = patient.call<void()>("never");
  pair.world.run_for(3s);
  CHECK(outcome(std::move(first)).code() == ErrorCode::timed_out);
  CHECK(outcome(std::move(second)).code() == ErrorCode::timed_out);
  CHECK_FALSE(third.ready());
  auto fourth = hasty.with({.timeout = 10s}).call<void()>("never");
  pair.world.run_for(5s);
  CHECK_FALSE(fourth.ready());
}

TEST_CASE("a handle notifies with its metadata, and its retries and timeout do not apply") {
  const Pair pair;
  std::string seen;
  std::optional<Duration> left;
  pair.b.expose("note", [&] {
    seen = CallContext::current()->metadata("who").value_or("nobody");
    left = CallContext::current()->time_left();
  });
  const MetadataEntry who{.key = "who", .value = "me"};
  pair.a.peer("b")
      .with({.timeout = 1ns, .retry = {.attempts = 3}, .metadata = {&who, 1}})
      .notify<void()>("note");
  pair.world.run_for(1ms);
  CHECK(seen == "me");
  CHECK(left.value_or(1h) > 1s);
}

TEST_CASE("a handle keeps the metadata of its options itself") {
  const Pair pair;
  std::vector<std::string> seen;
  pair.b.expose("note", [&seen] {
    for (const auto& [key, value] : CallContext::current()->metadata())
      seen.push_back(key + "=" + value);
  });
  const auto handle = [&] {
    const std::vector<std::string> texts{"a long key, beyond what a string keeps inside", "1", "b",
                                         ""};
    const std::vector<MetadataEntry> entries{{.key = texts[0], .value = texts[1]},
                                             {.key = texts[2], .value = texts[3]}};
    return pair.a.peer("b").with({.metadata = entries});
  }();
  const Peer copy = handle;
  copy.call<void()>("note").get();
  CHECK(seen == std::vector<std::string>{"a long key, beyond what a string keeps inside=1", "b="});
}

TEST_CASE("a handle outlives a move of its node, and after the node's end its calls fail so") {
  Pair pair;
  pair.b.expose<&peering::add>();
  std::optional<Node> a(std::move(pair.a));
  const Peer b = a->peer("b");
  const Peers both = a->each({"b", "b"});
  std::optional<Node> moved(std::move(*a));
  a.reset();
  CHECK(b.call<&peering::add>(1, 2).get() == 3);
  moved->shutdown(1s);
  CHECK(outcome(b.call<&peering::add>(1, 2)).code() == ErrorCode::shut_down);
  moved.reset();
  CHECK(outcome(b.call<&peering::add>(1, 2)).code() == ErrorCode::shut_down);
  CHECK(outcome(b.wait_for_credit(1)).code() == ErrorCode::shut_down);
  CHECK_THROWS_AS(b.notify<&peering::add>(1, 2), ShutDown);
  for (auto& sum : both.call<&peering::add>(1, 2))
    CHECK(outcome(std::move(sum)).code() == ErrorCode::shut_down);
}

TEST_CASE("one handle reaches each incarnation of its peer") {
  const test::VirtualWorld world;
  const Node root = world.root();
  const Peer guest = root.peer("guest");
  for (int i = 0; i < 2; ++i) {
    const Node node = world.join("guest");
    node.expose("number", [i] { return i; });
    root.wait_for_peer("guest").get();
    CHECK(guest.call<int()>("number").get() == i);
  }
}

TEST_CASE("a handle of several peers takes names, ranks and PeerInfos, and keeps them") {
  const Pair pair;
  const Node c = pair.world.join("c");
  pair.a.wait_for_peer("c").get();
  pair.b.expose<&peering::add>();
  c.expose<&peering::add>();
  std::optional<std::vector<std::string>> names({"c", "b"});
  const Peers named = pair.a.each(*names);
  names.reset();
  CHECK(when_all(named.call<&peering::add>(1, 2)).get() == std::vector{3, 3});
  CHECK(when_all(pair.a.each({c.rank(), pair.b.rank()}).call<&peering::add>(1, 1)).get() ==
        std::vector{2, 2});
  CHECK(when_all(pair.a.each({"b", "c"}).call<int(int, int)>("peering::add", 2, 2)).get() ==
        std::vector{4, 4});
  CHECK(when_all(pair.a.each(pair.a.peers()).call<&peering::add>(0, 1)).get().size() ==
        pair.a.peers().size());
}

TEST_CASE("the timeout of a handle of several peers holds for each of its calls") {
  const Pair pair;
  std::vector<Promise<void>> open;
  expose_never(pair.b, open);
  pair.a.expose("never", [] {});
  auto calls = pair.a.each({"a", "b"}).with({.timeout = 2s}).call<void()>("never");
  pair.world.run_for(3s);
  CHECK(outcome(std::move(calls.at(0))));
  CHECK(outcome(std::move(calls.at(1))).code() == ErrorCode::timed_out);
}

Future<int> awaits(const Node& node) {
  const int three = co_await node.peer("b").with({.timeout = 2s}).call<&peering::add>(1, 2);
  const Peer b = node.peer("b");
  const int seven = co_await b.with({.timeout = 2s}).call<int(int, int)>("peering::add", three, 4);
  co_return seven;
}

TEST_CASE("a coroutine may make a handle, with options, in the awaited expression") {
  const Pair pair;
  pair.b.expose<&peering::add>();
  CHECK(awaits(pair.a).get() == 7);
}

}  // namespace peer_test
}  // namespace batchrpc
