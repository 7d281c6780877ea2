#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rref/objects.hpp"

// What becomes of handles, and of calls of objects, when their nodes end.

namespace stores {
/// Counts the calls of its instances.
class Store {
 public:
  int put(const batchrpc::Bytes& /*bytes*/) { return ++calls; }
  int take(const batchrpc::RRef<objects::Counter>& /*counter*/) { return ++calls; }
  static inline int calls = 0;
};
}  // namespace stores

namespace batchrpc {
namespace rref_ending_test {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Holder;
using stores::Store;
using test::ObjectWorld;
using test::outcome;

TEST_CASE("promise 8: a node that ends gives back the references that it was sent") {
  ObjectWorld w;
  const auto mutex = std::make_shared<AsyncMutex>();
  const auto how = GENERATE("answers", "waits for the lock");
  CAPTURE(how);
  w.third.expose("answers", [](const RRef<Counter>& /*counter*/) {});
  w.third.expose("waits for the lock", [](const RRef<Counter>& /*counter*/) {},
                 {.exclusive = mutex});
  const auto guard = mutex->lock().get();
  auto counter = w.user.create<Counter(int)>("owner", 5);
  w.settle();
  CHECK(Counter::alive == 1);
  auto call = w.user.call<void(RRef<Counter>)>("third", how, counter);
  counter = {};
  w.world.run_for(0s);
  w.third.shutdown(1s);
  w.settle();
  CHECK(call.ready());
  CHECK(Counter::alive == 0);
}

TEST_CASE("promise 8: a node that is ending gives back the references of calls that it refuses") {
  ObjectWorld w;
  w.third.expose("use", [](const RRef<Counter>& /*counter*/) {});
  Promise<void> open;
  w.third.expose("slow", [&open] { return open.get_future(); });
  auto counter = w.user.create<Counter(int)>("owner", 5);
  const auto slow = w.user.call<void()>("third", "slow");
  w.settle();
  Future<void> refused;
  w.world.loop->schedule(w.world.loop->now() + 1s, [&] {
    refused = w.user.call<void(RRef<Counter>)>("third", "use", counter);
    counter = {};
  });
  w.world.loop->schedule(w.world.loop->now() + 2s, [&] { open.set_value(); });
  CHECK(w.third.shutdown(10s).empty());
  CHECK(outcome(std::move(refused)).code() == ErrorCode::shut_down);
  w.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("promise 8: a node that ends gives back the handles that its objects hold") {
  ObjectWorld w;
  test::expose_objects(w.third);
  {
    const auto counter = w.user.create<Counter(int)>("third", 5);
    const auto holder = w.user.create<Holder(RRef<Counter>)>("owner", counter);
    CHECK(holder.call<&Holder::add>(1).get() == 6);
    w.settle();
    CHECK(Counter::alive == 1);
    w.owner.shutdown(1s);
    w.settle();
  }
  w.settle();
  CHECK(Holder::alive == 0);
  CHECK(Counter::alive == 0);
}

TEST_CASE("promise 8: a node that ends gives back handles to objects of a node it never called") {
  ObjectWorld w;
  test::expose_objects(w.user);
  test::expose_objects(w.third);
  {
    const auto counter = w.owner.create<Counter(int)>("third", 5);
    const auto holder = w.owner.create<Holder(RRef<Counter>)>("user", counter);
    w.user.expose("captures", [counter = w.owner.create<Counter(int)>("third", 6)] {});
    w.settle();
    CHECK(Counter::alive == 2);
    CHECK(Holder::alive == 1);
    w.user.shutdown(1s);
  }
  w.settle();
  CHECK(Holder::alive == 0);
  CHECK(Counter::alive == 0);
}

TEST_CASE("promise 8: handles that an ending node captures leave when it has never called") {
  ObjectWorld w;
  test::expose_objects(w.third);
  w.user.expose("give",
                [&w](const RRef<Counter>& given) { w.user.expose("captures", [given] {}); });
  {
    const auto counter = w.owner.create<Counter(int)>("third", 6);
    w.owner.call<void(RRef<Counter>)>("user", "give", counter).get();
  }
  w.settle();
  CHECK(Counter::alive == 1);
  w.user.shutdown(1s);
  w.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("promise 8: what waits behind a large call when the owner ends has never run") {
  ObjectWorld w;
  test::expose_objects(w.third);
  w.owner.expose_class<Store()>();
  w.owner.expose<&Store::put>();
  w.owner.expose<&Store::take>();
  Store::calls = 0;
  w.world.network->set_link("owner", "far", {.latency = 20ms, .capacity = std::size_t{64} << 10});
  const Node far = w.world.join("far");
  auto counter = far.create<Counter(int)>("third", 5);
  const auto store = far.create<Store()>("owner");
  w.settle();
  auto slow = store.call<&Store::put>(Bytes::allocate(std::size_t{16} << 20));
  auto behind = store.call<&Store::take>(counter);
  counter = {};
  w.settle();
  w.owner.shutdown(1s);
  w.settle();
  for (auto* call : {&slow, &behind}) {
    const auto result = outcome(std::move(*call));
    REQUIRE(result.code() == ErrorCode::shut_down);
    CHECK_FALSE(test::may_have_run(result.error()));
  }
  CHECK(Store::calls == 0);
  CHECK(Counter::alive == 0);
}

TEST_CASE("promise 8: a method that runs when the owner ends is not said not to have begun") {
  ObjectWorld w;
  const auto diary = w.user.create<objects::Diary>("owner", "first");
  Promise<void> open;
  objects::Diary::gate = open.get_future();
  auto running = diary.call<&objects::Diary::later>("a");
  w.settle();
  const auto told = w.owner.shutdown(1s);
  REQUIRE_FALSE(told.empty());
  CHECK(told.front() == "1 call from user, not yet answered: objects::Diary::later");
  objects::Diary::gate.reset();
}

TEST_CASE("promise 8: a method that waits for its object when the owner ends has never run") {
  ObjectWorld w;
  std::optional<Result<int>> result;
  w.third.expose("use", [&result](const RRef<Counter>& counter) {
    counter.call<&Counter::value>().then([&result](const Result<int>& end) { result = end; });
  });
  w.world.network->partition("user", "owner");  // so that the creation does not come
  const auto counter = w.user.create<Counter(int)>("owner", 5);
  w.user.call<void(RRef<Counter>)>("third", "use", counter).get();
  w.settle();
  CHECK_FALSE(result);
  CHECK(w.owner.shutdown(1s) ==
        std::vector<std::string>{
            "1 call from third, not yet answered: "
            "objects::Counter::value; 1 of them has not started",
            "third holds 1 RRef to an object that was never created, since 2 s"});
  w.settle();
  REQUIRE(result);
  REQUIRE(result->code() == ErrorCode::shut_down);
  CHECK_FALSE(test::may_have_run(result->error()));
  CHECK_THAT(result->message(), Catch::Contains("node owner is shutting down"));
}

}  // namespace rref_ending_test
}  // namespace batchrpc
