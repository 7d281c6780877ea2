#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// One call to several peers, of which the first answer counts.

namespace batchrpc {
namespace hedged_calls_test {

using namespace std::chrono_literals;
using test::VirtualWorld;

/// Two nodes of which one answers after a second, the other after two, and a caller.
struct HedgeWorld {
  VirtualWorld world;
  Node caller = world.root("caller");
  Node one = world.join("one");
  Node two = world.join("two");
  std::vector<std::string> cancelled{};
  std::vector<std::string> answered{};

  HedgeWorld() {
    expose(one, 2s);
    expose(two, 1s);
  }
  void expose(const Node& node, Duration time) {
    node.expose("slow", [this, time, name = node.name()] { return slow(time, name); });
  }
  Future<std::string> slow(Duration time, std::string name) {
    const CallContext context = *CallContext::current();
    Promise<void> over;
    const Future<void> is_over = over.get_future();
    world.loop->schedule(world.loop->now() + time,
                         [over = std::move(over)]() mutable { over.set_value(); });
    co_await is_over;
    (context.cancelled() ? cancelled : answered).push_back(name);
    co_return name;
  }
  [[nodiscard]] Future<std::string> call(const std::string& peer) const {
    return caller.peer(peer).with({.cancel_when_dropped = true}).call<std::string()>("slow");
  }
};

Future<std::string> hedged(const HedgeWorld& w) {
  auto first = w.call("one");
  auto second = w.call("two");
  const auto winner = co_await when_any(first, second);
  (winner.index == 0 ? second : first).cancel();
  co_return winner.value;
}

TEST_CASE("when_any cancels no call that is late, not even one marked to be, given up or kept") {
  HedgeWorld w;
  const bool kept = GENERATE(false, true);
  {
    auto first = w.call("one");
    auto second = w.call("two");
    const auto winner =
        kept ? when_any(first, second).get() : when_any(std::move(first), std::move(second)).get();
    CHECK(winner.index == 1);
    CHECK(winner.value == "two");
  }  // nobody has any of the futures now
  w.world.run_for(5s);
  CHECK(w.cancelled.empty());
  CHECK(w.answered == std::vector<std::string>{"two", "one"});
}

TEST_CASE("who keeps both futures of a hedged call cancels the one that is late") {
  HedgeWorld w;
  CHECK(hedged(w).get() == "two");
  CHECK(w.world.time() < 1100ms);
  w.world.run_for(5s);
  CHECK(w.answered == std::vector<std::string>{"two"});
  CHECK(w.cancelled == std::vector<std::string>{"one"});
}

}  // namespace hedged_calls_test
}  // namespace batchrpc
