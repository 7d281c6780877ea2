#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "largest_allocation.hpp"
#include "long_tests.hpp"
#include "node/virtual_world.hpp"

// What a callback may do: everything. And what is left behind by what is over: nothing.

namespace callbacks {
int add(int a, int b) { return a + b; }
}  // namespace callbacks

namespace batchrpc {
namespace callbacks_test {

using namespace std::chrono_literals;
using test::outcome;

constexpr int kManyCalls = test::less_if_sanitized(1'000'000);
constexpr int kManyNodes = test::less_if_sanitized(10'000);

struct Pair : test::NodePair {
  Pair() { b.expose<&callbacks::add>(); }
};

TEST_CASE("a future may be destroyed in its own callback") {
  Pair pair;
  constexpr int kTimes = 100'000;
  int called = 0;
  for (int i = 0; i < kTimes; ++i) {
    auto future =
        std::make_shared<std::optional<Future<int>>>(pair.a.call<&callbacks::add>("b", i, 1));
    (*future)->then([future, &called](const Result<int>& result) {
      future->reset();
      if (result) ++called;
    });
    if (i % 64 == 63) pair.world.run_for(0s);
  }
  pair.world.run_for(1s);
  CHECK(called == kTimes);
}

TEST_CASE("a node may be destroyed in a callback of its own call") {
  test::VirtualWorld world;
  const Node root = world.root();
  root.expose<&callbacks::add>();
  const int times = test::times(kManyNodes, 100'000);
  for (int i = 0; i < times; ++i) {
    auto node = std::make_shared<std::optional<Node>>(world.join("guest"));
    bool ended = false;
    (*node)->call<&callbacks::add>("root", i, 1).then([node, &ended](const Result<int>& result) {
      CHECK(result);
      node->reset();
      ended = true;
    });
    auto other = (*node)->peer("root").with({.timeout = 1h}).call<int()>("nothing");
    world.run_for(1ms);
    CHECK(ended);
    CHECK(other.ready());
  }
}

TEST_CASE("a node may be destroyed in its own handler") {
  test::VirtualWorld world;
  const Node root = world.root();
  const int times = test::times(kManyNodes, 100'000);
  for (int i = 0; i < times; ++i) {
    auto node = std::make_unique<std::optional<Node>>(world.join("guest"));
    (*node)->expose("end", [&node] {
      node->reset();
      return 1;
    });
    const auto result = outcome(root.call<int()>("guest", "end"));
    CHECK_FALSE(node->has_value());
    if (!result) CHECK(test::may_have_run(result.error()));
    world.run_for(1ms);
  }
}

TEST_CASE("a node may be destroyed in a callback of another node's call, and in a notice") {
  test::VirtualWorld world;
  const Node root = world.root();
  root.expose<&callbacks::add>();
  const int times = test::times(kManyNodes / 4, 100'000);
  for (int i = 0; i < times; ++i) {
    auto first = std::make_shared<std::optional<Node>>(world.join("first"));
    auto second = std::make_shared<std::optional<Node>>(world.join("second"));
    (*second)->on_membership([second](const MembershipChange& change) {
      if (change.peer.name == "first" && !change.joined) second->reset();
    });
    (*second)->call<&callbacks::add>("root", 1, 2).then([first](const Result<int>&) {
      first->reset();
    });
    world.run_for(10ms);
    CHECK_FALSE(first->has_value());
    CHECK_FALSE(second->has_value());
  }
}

TEST_CASE("a callback may use every function of its node, and wait in it") {
  Pair pair;
  int steps = 0;
  pair.a.call<&callbacks::add>("b", 1, 2).then([&](int three) {
    CHECK(three == 3);
    CHECK(pair.a.call<&callbacks::add>("b", 2, 2).get() == 4);
    pair.a.peer("b").notify<&callbacks::add>(1, 1);
    const std::vector<std::string> peers{"b", "b"};
    for (auto& future : pair.a.each(peers).call<&callbacks::add>(1, 1))
      CHECK(future.get() == 2);
    pair.a.expose<&callbacks::add>();
    CHECK(pair.b.call<&callbacks::add>("a", 5, 5).get() == 10);
    CHECK(exposed_functions(pair.a).size() == 1);
    CHECK_FALSE(function_schema(pair.a, "callbacks::add").empty());
    CHECK(pair.a.unexpose<&callbacks::add>());
    CHECK(pair.a.peers().size() == 1);
    CHECK(pair.a.wait_for_peer("b").get().name == "b");
    CHECK(outcome(pair.a.wait_for_peer("nobody", 10ms)).code() == ErrorCode::timed_out);
    pair.a.on_membership([](const MembershipChange&) {}).cancel();
    const Node c = pair.world.join("c");
    CHECK(c.call<&callbacks::add>("b", 3, 3).get() == 6);
    ++steps;
  });
  pair.world.run_for(1s);
  CHECK(steps == 1);
}

TEST_CASE("a callback may shut its node down") {
  Pair pair;
  std::vector<std::string> left{"not asked"};
  bool after = false;
  pair.a.call<&callbacks::add>("b", 1, 2).then([&](int) { left = pair.a.shutdown(1s); }).then([&] {
    after = true;
  });
  pair.world.run_for(1s);
  CHECK(left.empty());
  CHECK(after);
}

TEST_CASE("callbacks that make the next call go on for ever without growing the stack") {
  Pair pair;
  constexpr int kCalls = 20'000;
  int done = 0;
  std::function<void()> next = [&] {
    pair.a.call<&callbacks::add>("b", done, 1).then([&](int) {
      if (++done < kCalls) next();
    });
  };
  next();
  pair.world.run_for(1s);
  CHECK(done == kCalls);
}

TEST_CASE("a function that exposes and takes back others, and itself, while it is called") {
  Pair pair;
  pair.b.expose("chameleon", [&pair](int round) {
    pair.b.expose("extra" + std::to_string(round), [] {});
    CHECK(pair.b.unexpose("extra" + std::to_string(round)));
    return exposed_functions(pair.b).size();
  });
  for (int i = 0; i < 10; ++i)
    CHECK(pair.a.call<std::size_t(int)>("b", "chameleon", i).get() == 2);
}

TEST_CASE("calls that are over leave no timers and no memory, with deadlines an hour away") {
  Pair pair;
  const auto some = [&](int count) {
    std::vector<Future<int>> sums;
    sums.reserve(100);
    for (int done = 0; done < count;) {
      sums.clear();
      for (int i = 0; i < 100; ++i, ++done) {
        sums.push_back(pair.a.peer("b").with({.timeout = 1h}).call<&callbacks::add>(i, 1));
      }
      if (sums.back().get() != 100) FAIL("a wrong sum");
    }
  };
  some(2000);
  const std::size_t timers = pair.world.loop->pending();
  const std::size_t before = test::allocated_bytes();
  some(kManyCalls);
  CHECK(pair.world.loop->pending() <= timers + 2);
  CHECK(test::allocated_bytes() <= before + 16 * 1024);
}

TEST_CASE("a pending call takes at most 512 bytes") {
  Pair pair;
  std::vector<Promise<int>> never;
  never.reserve(10'000);
  pair.b.expose("never", [&never] {
    never.emplace_back();
    return never.back().get_future();
  });
  pair.a.peer("b").with({.timeout = 1h}).call<int()>("never");
  std::vector<Future<int>> calls;
  calls.reserve(8192);
  const std::size_t before = test::allocated_bytes();
  for (int i = 0; i < 8000; ++i)
    calls.push_back(pair.a.peer("b").with({.timeout = 1h}).call<int()>("never"));
  // Before the loop runs they are in the output queue as well, 80 bytes each.
  CHECK((test::allocated_bytes() - before) / 8000 <= 512);
  calls.clear();
}

}  // namespace callbacks_test
}  // namespace batchrpc
