#include "batchrpc/call/call_context.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc {
namespace call_context_test {

using namespace std::chrono_literals;

using Pair = test::NodePair;

TEST_CASE("outside of a handler there is no context") { CHECK(CallContext::current() == nullptr); }

TEST_CASE("a handler is told who calls it") {
  Pair pair;
  const auto who = [] {
    const PeerIdentity& caller = CallContext::current()->caller();
    return caller.name + " of rank " + std::to_string(caller.rank);
  };
  pair.a.expose("who", who);
  pair.b.expose("who", who);
  CHECK(pair.a.call<std::string()>("b", "who").get() == "a of rank 0");
  CHECK(pair.b.call<std::string()>("a", "who").get() == "b of rank 1");
  CHECK(pair.b.call<std::string()>("b", "who").get() == "b of rank 1");
  const Node c = pair.world.join("c");
  CHECK(c.call<std::string()>("b", "who").get() == "c of rank 2");
  CHECK(CallContext::current() == nullptr);
}

TEST_CASE("a handler is told how long is left") {
  Pair pair;
  std::optional<Duration> left;
  bool unlimited = false;
  pair.b.expose("left", [&] {
    const auto time = CallContext::current()->time_left();
    unlimited = !time;
    left = time;
  });
  pair.a.peer("b").with({.timeout = 250ms}).call<void()>("left").get();
  CHECK(left == 250ms);
  pair.a.call<void()>("b", "left").get();
  CHECK(left == 60s);
  pair.a.peer("b").with({.timeout = Duration::max()}).call<void()>("left").get();
  CHECK(unlimited);
}

TEST_CASE("what is left grows less while the handler works, and stops at zero") {
  Pair pair;
  std::vector<Duration> left;
  Promise<void> go;
  auto ready = std::make_shared<Future<void>>(go.get_future());
  pair.b.expose("slow", [&, ready]() -> Future<void> {
    const CallContext context = *CallContext::current();  // a copy outlives the handler's start
    left.push_back(*context.time_left());
    co_await std::move(*ready);
    left.push_back(*context.time_left());
    pair.world.loop->advance(10s);
    left.push_back(*context.time_left());
  });
  auto call = pair.a.peer("b").with({.timeout = 5s}).call<void()>("slow");
  pair.world.run_for(2s);
  go.set_value();
  CHECK(left == std::vector<Duration>{5s, 3s, 0s});
}

TEST_CASE("time on the way counts from the arrival") {
  Pair pair;
  pair.world.network->set_link({.latency = 100ms});
  const Node c = pair.world.join("c");
  c.expose("left", [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        *CallContext::current()->time_left());
  });
  const auto left =
      pair.a.peer("c").with({.timeout = 1s}).call<std::chrono::milliseconds()>("left").get();
  CHECK(left <= 1s);
  CHECK(left >= 700ms);
}

TEST_CASE("a handler called while another waits has its own context, and the other its own again") {
  Pair pair;
  std::vector<std::string> callers;
  const auto note = [&callers] { callers.push_back(CallContext::current()->caller().name); };
  pair.a.expose("inner", note);
  pair.b.expose("outer", [&] {
    note();
    pair.b.call<void()>("a", "inner").get();
    note();
  });
  pair.a.call<void()>("b", "outer").get();
  CHECK(callers == std::vector<std::string>{"a", "b", "a"});
}

}  // namespace call_context_test
}  // namespace batchrpc
