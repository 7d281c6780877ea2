#include <catch2/catch.hpp>
#include <optional>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/testing.hpp"

// Promise 9: who is told of joins and losses. Found by random programs.
namespace batchrpc {
namespace missed_news_test {

using namespace std::chrono_literals;

// The root takes a member for lost that stands still, or that gives the root up by itself; either
// way news were sent to a session that is over.
TEST_CASE("promise 9: a member that was cut off from the root hears what it has missed") {
  const Duration cut_after = GENERATE(Duration(1h), Duration(1600ms));
  SimulatedWorld world;
  const auto quiet = [&world](const char* host) {
    return Node(world.options(host, {.logging = {.sink = [](auto, auto) {}}}));
  };
  const Node root = quiet("root");
  const Node member = quiet("member");
  std::optional<Node> other(quiet("other"));
  world.run_for(1s);
  world.pause("member");
  world.after(cut_after, [&] { world.network().cut("root", "member"); });
  world.run_for(2s);
  world.kill("other");
  other.reset();
  world.run_for(1s);
  other.emplace(quiet("other"));
  other->expose("life", [] { return 2; });
  world.run_for(cut_after < 1h ? 2300ms : 7s);
  world.resume("member");
  world.run_for(2s);
  CHECK(member.peer("other").with({.timeout = 1s}).call<int()>("life").get() == 2);
}

}  // namespace missed_news_test
}  // namespace batchrpc
