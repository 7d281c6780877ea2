#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "node/real_nodes.hpp"
#include "rref/objects.hpp"

// Calls of objects, and calls that bring references, while the only worker of their node is busy.

namespace takers {
class Taker {
 public:
  void take(const batchrpc::RRef<objects::Counter>& /*counter*/) {}
  int one() { return 1; }
};
}  // namespace takers

namespace batchrpc {
namespace rref_busy_test {

using namespace std::chrono_literals;
using objects::Counter;
using takers::Taker;
using test::may_have_run;
using test::outcome;

/// "b" has one worker, which stuck() keeps; "c" has the counters.
struct BusyNode {
  struct Shared {  // with a handler that may outlive its node
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    std::atomic<bool> begun{false};
  };
  const std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  const Node a{test::real_root("a")};
  Node b{test::real_joining(a, "b", 1)};
  const Node c{test::real_joining(a, "c")};
  std::optional<RRef<Counter>> counter;
  Future<void> stuck;

  BusyNode() {
    Counter::alive = 0;
    test::expose_objects(c);
    b.expose_class<Taker()>();
    b.expose<&Taker::take>();
    b.expose<&Taker::one>();
    b.expose("stuck", [shared = shared] {
      shared->begun = true;
      shared->released.wait();
    });
    b.expose("use", [](const RRef<Counter>& /*counter*/) {});
    b.expose("ping", [] {}, {.short_handler = true});
    c.expose("nothing", [] {});
    counter = a.create<Counter(int)>("c", 1);
    counter->call<&Counter::value>().get();
  }
  ~BusyNode() { shared->release.set_value(); }
  BusyNode(const BusyNode&) = delete;
  BusyNode& operator=(const BusyNode&) = delete;

  void keep_busy() {
    stuck = a.call<void()>("b", "stuck");
    while (!shared->begun)
      std::this_thread::yield();
  }
  /// What was sent to b before has come there.
  void arrive() const { a.call<void()>("b", "ping").get(); }
  /// Nothing tells of the end of an object: this asks its owner again and again.
  bool counter_is_gone() const {
    for (int i = 0; i < 20'000 && Counter::alive != 0; ++i)
      c.call<void()>("c", "nothing").get();
    return Counter::alive == 0;
  }
};

TEST_CASE("promise 4: a cancelled method's arguments are gone though no worker is free",
          "[threads]") {
  BusyNode w;
  const auto taker = w.a.create<Taker>("b");
  CHECK(taker.call<&Taker::one>().get() == 1);
  w.keep_busy();
  auto call = taker.call<&Taker::take>(*w.counter);
  w.arrive();
  w.counter.reset();
  CHECK(call.cancel());
  CHECK(w.counter_is_gone());
}

TEST_CASE("promise 8: references that wait for a worker when their node ends are given back",
          "[threads]") {
  BusyNode w;
  w.keep_busy();
  const bool as_notification = GENERATE(false, true);
  CAPTURE(as_notification);
  Future<void> call;
  if (as_notification) {
    w.a.peer("b").notify<void(RRef<Counter>)>("use", *w.counter);
  } else {
    call = w.a.call<void(RRef<Counter>)>("b", "use", *w.counter);
  }
  w.arrive();
  w.counter.reset();
  w.b.shutdown(200ms);
  CHECK(w.counter_is_gone());
}

TEST_CASE("promise 8: a constructor that waits for a worker when its node ends has never run",
          "[threads]") {
  BusyNode w;
  w.keep_busy();
  const auto taker = w.a.create<Taker>("b");
  auto behind = taker.call<&Taker::one>();
  w.arrive();
  w.b.shutdown(200ms);
  const auto result = outcome(std::move(behind));
  REQUIRE(result.code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(result.error()));
  const auto later = outcome(taker.call<&Taker::one>());
  REQUIRE_FALSE(later);
  CHECK_FALSE(may_have_run(later.error()));
}

}  // namespace rref_busy_test
}  // namespace batchrpc
