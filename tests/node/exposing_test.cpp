// Functions that come and go while others call them.
#include <catch2/catch.hpp>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"

namespace exposing {
int add(int a, int b) { return a + b; }

/// Has a method that uses the object after `gate` has opened.
struct Greeter {
  std::string greeting = "a greeting that is too long for the string object itself";
  std::shared_ptr<batchrpc::Future<void>> gate;
  batchrpc::Future<std::string> greet() {
    co_await *gate;
    co_return greeting;
  }
};
}  // namespace exposing

namespace batchrpc {
namespace exposing_test {

using namespace std::chrono_literals;
using test::outcome;
using test::VirtualWorld;

using Pair = test::NodePair;

TEST_CASE("a function can be taken back while its calls are under way: they finish") {
  Pair pair;
  Promise<int> promise;
  pair.b.expose("later", [future = std::make_shared<Future<int>>(promise.get_future())] {
    return std::move(*future);
  });
  auto answer = pair.a.call<int()>("b", "later");
  pair.world.run_for(std::chrono::milliseconds(1));
  CHECK(pair.b.unexpose("later"));
  CHECK_FALSE(pair.b.unexpose("later"));
  CHECK(outcome(pair.a.call<int()>("b", "later")).code() == ErrorCode::not_found);
  promise.set_value(5);
  CHECK(answer.get() == 5);
}

TEST_CASE("what a coroutine captures lives until its calls are done, also when it is taken back") {
  Pair pair;
  Promise<void> open;
  const auto gate = std::make_shared<Future<void>>(open.get_future());
  const auto captured = std::make_shared<int>(5);
  pair.b.expose("later", [gate, captured]() -> Future<int> {
    co_await *gate;
    co_return *captured;
  });
  auto answer = pair.a.call<int()>("b", "later");
  pair.world.run_for(1ms);
  CHECK(pair.b.unexpose("later"));
  CHECK(captured.use_count() == 2);
  open.set_value();
  CHECK(answer.get() == 5);
  pair.world.run_for(1ms);
  CHECK(captured.use_count() == 1);
}

TEST_CASE("the object of an asynchronous method lives until its calls are done") {
  Pair pair;
  Promise<void> open;
  auto greeter = std::make_shared<exposing::Greeter>();
  greeter->gate = std::make_shared<Future<void>>(open.get_future());
  const std::weak_ptr<exposing::Greeter> alive = greeter;
  pair.b.expose<&exposing::Greeter::greet>(std::move(greeter));
  auto answer = pair.a.call<&exposing::Greeter::greet>("b");
  pair.world.run_for(1ms);
  CHECK(pair.b.unexpose<&exposing::Greeter::greet>());
  CHECK_FALSE(alive.expired());
  open.set_value();
  CHECK_THAT(answer.get(), Catch::Contains("a greeting"));
  pair.world.run_for(1ms);
  CHECK(alive.expired());
}

TEST_CASE("what a coroutine captures lives until it is done, also when its node has ended") {
  VirtualWorld world;
  const Node root = world.root("a");
  Promise<void> open;
  const auto gate = std::make_shared<Future<void>>(open.get_future());
  const auto captured = std::make_shared<int>(5);
  Future<int> answer;
  int seen = 0;
  {
    Node ending = world.join("b");
    ending.expose("later", [gate, captured, &seen]() -> Future<int> {
      co_await *gate;
      co_return seen = *captured;
    });
    answer = root.call<int()>("b", "later");
    world.run_for(1ms);
    ending.shutdown(1ms);
  }
  CHECK(captured.use_count() == 2);
  open.set_value();
  CHECK(seen == 5);
  world.run_for(1s);
  CHECK(captured.use_count() == 1);
  CHECK_FALSE(outcome(std::move(answer)));
}

TEST_CASE("a name that was taken back can be given to another function, of another signature") {
  Pair pair;
  pair.b.expose("f", [](int x) { return x; });
  CHECK(pair.a.call<int(int)>("b", "f", 1).get() == 1);
  CHECK(pair.b.unexpose("f"));
  pair.b.expose("f", [](int x) { return 2 * x; });
  CHECK(pair.a.call<int(int)>("b", "f", 1).get() == 2);
  CHECK(pair.b.unexpose("f"));
  pair.b.expose("f", [](std::string x) { return x; });
  CHECK(outcome(pair.a.call<int(int)>("b", "f", 1)).code() == ErrorCode::bad_signature);
  CHECK(pair.a.call<std::string(std::string)>("b", "f", "x").get() == "x");
}

TEST_CASE("a function that was taken back takes no calls, also while one of it still runs") {
  Pair pair;
  Promise<void> open;
  const Future<void> gate = open.get_future();
  pair.b.expose("slow", [&gate] {
    gate.get();
    return 1;
  });
  auto first = pair.a.call<int()>("b", "slow");
  pair.world.loop->schedule(pair.world.loop->now() + 10ms, [&] { pair.b.unexpose("slow"); });
  std::optional<ErrorCode> second;
  pair.world.loop->schedule(pair.world.loop->now() + 20ms, [&] {
    pair.a.call<int()>("b", "slow").then([&](const Result<int>& r) { second = r.code(); });
  });
  pair.world.loop->schedule(pair.world.loop->now() + 30ms, [&] { open.set_value(); });
  CHECK(first.get() == 1);
  pair.world.run_for(1s);
  CHECK(second == ErrorCode::not_found);
}

TEST_CASE("a function that takes itself back while it runs finishes") {
  Pair pair;
  pair.b.expose("once", [&pair, alive = std::make_shared<int>(9)] {
    pair.b.unexpose("once");
    return *alive;
  });
  CHECK(pair.a.call<int()>("b", "once").get() == 9);
  CHECK(outcome(pair.a.call<int()>("b", "once")).code() == ErrorCode::not_found);
}

TEST_CASE("a name is exposed once, and the library's own names are not for users") {
  Pair pair;
  pair.b.expose<&exposing::add>();
  CHECK_THROWS_WITH(pair.b.expose<&exposing::add>(),
                    Catch::Contains("'exposing::add' is already exposed"));
  CHECK_THROWS_AS(pair.b.expose("", [] {}), InvalidArgument);
  CHECK_THROWS_WITH(pair.b.expose("batchrpc.mine", [] {}), Catch::Contains("batchrpc."));
  CHECK(exposed_functions(pair.b).size() == 1);
}

TEST_CASE("a node prints the schema of what it exposes") {
  Pair pair;
  pair.b.expose<&exposing::add>();
  CHECK_THAT(function_schema(pair.b, "exposing::add"), Catch::Contains("struct Arguments") &&
                                                           Catch::Contains("arg1 @1 :Int32") &&
                                                           Catch::Contains("struct Result"));
  CHECK_THROWS_WITH(function_schema(pair.b, "exposing::ad"),
                    Catch::Contains("did you mean 'exposing::add'?"));
  CHECK_THROWS_WITH(function_schema(pair.b, "nothing like it"),
                    Catch::EndsWith("'nothing like it' is exposed on b"));
}

TEST_CASE("calls that come before their function is exposed wait for it, for a while") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("slow");
  options.expose_within = 5s;
  const Node slow(options);
  const TimePoint start = world.loop->now();
  auto first = root.call<&exposing::add>("slow", 1, 2);
  auto other = root.call<int()>("slow", "never exposed");
  root.peer("slow").notify<&exposing::add>(1, 2);
  auto wrong = root.call<int(int)>("slow", "exposing::add", 1);
  world.run_for(2s);
  CHECK_FALSE(first.ready());
  slow.expose<&exposing::add>();
  CHECK(first.get() == 3);
  CHECK(world.loop->now() - start == 2s);
  CHECK(outcome(std::move(wrong)).code() == ErrorCode::bad_signature);
  CHECK_FALSE(other.ready());
  const auto missing = outcome(std::move(other));
  CHECK(world.loop->now() - start == 5s);
  CHECK(missing.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(missing.error()));
  const auto late = outcome(root.call<int()>("slow", "never exposed"));
  CHECK(world.loop->now() - start == 5s);
  CHECK(late.code() == ErrorCode::not_found);
}

TEST_CASE("no call waits for a function of a node that has exposed everything") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("worker");
  options.expose_within = GENERATE(as<Duration>(), 5s, Duration::max());
  const Node worker(options);
  worker.expose<&exposing::add>();
  auto waiting = root.call<int(int, int)>("worker", "exposing::ad", 1, 2);
  world.run_for(1s);
  CHECK_FALSE(waiting.ready());
  CHECK(
      world.log.contain("a call from root waits for its function (NodeOptions::expose_within): "
                        "no function 'exposing::ad' is exposed on worker; did you mean "
                        "'exposing::add'?"));
  worker.ready();
  const TimePoint now = world.loop->now();
  CHECK(outcome(std::move(waiting)).code() == ErrorCode::not_found);
  CHECK(outcome(root.call<int(int, int)>("worker", "exposing::ad", 1, 2)).code() ==
        ErrorCode::not_found);
  CHECK(root.call<&exposing::add>("worker", 1, 2).get() == 3);
  CHECK(world.loop->now() == now);
}

TEST_CASE("a call that meets expose() and ready() finds its function", "[threads]") {
  for (int round = 0; round < 30; ++round) {
    const Node caller(test::real_root("a", 1));
    NodeOptions options = test::real_joining(caller, "b", 1);
    options.expose_within = 5s;
    const Node worker(options);
    caller.wait_for_peer("b").get();
    std::thread later([&] {
      worker.expose<&exposing::add>();
      worker.ready();
    });
    std::vector<Future<int>> sums;
    for (int i = 0; i < 1000; ++i)
      sums.push_back(caller.call<&exposing::add>("b", i, 1));
    for (int i = 0; i < 1000; ++i)
      REQUIRE(sums[static_cast<std::size_t>(i)].get() == i + 1);
    later.join();
  }
}

TEST_CASE("calls that wait for their function when the node ends have not run") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("slow");
  options.expose_within = 5s;
  Node slow(options);
  auto call = root.call<&exposing::add>("slow", 1, 2);
  world.run_for(1s);
  slow.shutdown(1s);
  world.run_for(1s);
  REQUIRE(call.ready());
  const auto result = outcome(std::move(call));
  REQUIRE_FALSE(result);
  INFO(result.message());
  CHECK_FALSE(test::may_have_run(result.error()));
}

}  // namespace exposing_test
}  // namespace batchrpc
