#include <malloc.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rref/objects.hpp"

// Calls of objects' methods that are cancelled, or whose time runs out, and calls with references.

namespace blobs {
/// Takes much at once.
class Blob {
 public:
  int put(const batchrpc::Bytes& /*bytes*/) { return ++puts; }
  static inline int puts = 0;
};
}  // namespace blobs

namespace waiters {
/// Waits for the gate. Counts its instances, and how often one has waited.
class Waiter {
 public:
  Waiter() { ++alive, waits = 0; }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { --alive; }
  void wait() {
    ++waits;
    gate->get();
  }
  static inline int alive = 0;
  static inline int waits = 0;
  static inline std::optional<batchrpc::Future<void>> gate;
};
}  // namespace waiters

namespace batchrpc {
namespace rref_cancelling_test {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Diary;
using objects::Holder;
using test::ObjectWorld;
using test::outcome;
using waiters::Waiter;

TEST_CASE("promise 4: a method that waits for its object never starts when it is cancelled") {
  ObjectWorld w;
  const auto diary = w.user.create<Diary(std::string)>("owner", "paper");
  w.settle();
  auto first = diary.call<&Diary::note>("one");
  auto second = diary.call<&Diary::note>("two");
  auto third = diary.call<&Diary::note>("three");
  CHECK(second.cancel());
  CHECK(outcome(std::move(second)).code() == ErrorCode::cancelled);
  third.get();
  CHECK(diary.call<&Diary::lines>().get() ==
        std::vector<std::string>{"made with paper", "one", "three"});
}

TEST_CASE("promise 4: a method that is behind a large call never starts when it is cancelled") {
  ObjectWorld w;
  w.owner.expose_class<blobs::Blob()>();
  w.owner.expose<&blobs::Blob::put>();
  blobs::Blob::puts = 0;
  const auto blob = w.user.create<blobs::Blob()>("owner");
  w.settle();
  auto large = blob.call<&blobs::Blob::put>(Bytes::allocate(std::size_t{16} << 20));
  auto behind = blob.call<&blobs::Blob::put>(Bytes());
  auto last = blob.call<&blobs::Blob::put>(Bytes());
  CHECK(behind.cancel());
  CHECK(last.get() == 2);
  CHECK(large.get() == 1);
}

TEST_CASE("promise 3: a method whose time ran out while a large call came in never starts") {
  ObjectWorld w;
  w.owner.expose_class<blobs::Blob()>();
  w.owner.expose<&blobs::Blob::put>();
  blobs::Blob::puts = 0;
  w.world.network->set_link("owner", "far", {.latency = 20ms, .capacity = std::size_t{64} << 10});
  const Node far = w.world.join("far");
  const auto blob = far.create<blobs::Blob()>("owner");
  w.settle();
  auto slow = blob.call<&blobs::Blob::put>(Bytes::allocate(std::size_t{16} << 20));
  auto late = blob.with({.timeout = 1s}).call<&blobs::Blob::put>(Bytes());
  auto last = blob.call<&blobs::Blob::put>(Bytes());
  CHECK(last.get() == 2);
  CHECK(slow.get() == 1);
  CHECK(outcome(std::move(late)).code() == ErrorCode::timed_out);
}

TEST_CASE("promise 4: methods that are cancelled while their object is busy leave nothing behind") {
  constexpr int kRounds = 20;
  ObjectWorld w;
  const auto diary = w.user.create<Diary(std::string)>("owner", "paper");
  w.settle();
  Promise<void> open;
  Diary::gate = open.get_future();
  auto busy = diary.call<&Diary::wait>("one");
  std::vector<Future<void>> calls;
  std::vector<std::size_t> held;  // bytes, after each round
  // The object waits on this thread: what follows runs inside its method.
  const auto at = [&](Duration time, auto step) {
    w.world.loop->schedule(w.world.loop->now() + time, std::move(step));
  };
  for (int i = 1; i <= kRounds; ++i) {
    at(i * 1s, [&] {
      for (int j = 0; j < 1000; ++j)
        calls.push_back(diary.call<&Diary::note>("a note that is too long to be kept in a string"));
    });
    at(i * 1s + 300ms, [&] {
      for (auto& call : calls)
        call.cancel();
      calls.clear();
    });
    at(i * 1s + 600ms, [&] { held.push_back(mallinfo2().uordblks); });
  }
  at((kRounds + 1) * 1s, [&] { open.set_value(); });
  busy.get();
  REQUIRE(held.size() == kRounds);
  CHECK(held.back() <= held.front() + (std::size_t{64} << 10));
  CHECK(diary.call<&Diary::lines>().get() ==
        std::vector<std::string>{"made with paper", "one begins", "one ends"});
  Diary::gate.reset();
}

TEST_CASE("an object whose last waiting method was cancelled is destroyed with its last handle") {
  ObjectWorld w;
  w.owner.expose_class<Waiter()>();
  w.owner.expose<&Waiter::wait>();
  Promise<void> open;
  Waiter::gate = open.get_future();
  auto waiter = w.user.create<Waiter()>("owner");
  const auto busy = waiter.call<&Waiter::wait>();
  auto behind = waiter.call<&Waiter::wait>();
  waiter = {};
  bool was_cancelled = false;
  w.world.loop->schedule(w.world.loop->now() + 1s, [&] { was_cancelled = behind.cancel(); });
  w.world.loop->schedule(w.world.loop->now() + 2s, [&] {
    CHECK(Waiter::alive == 1);
    open.set_value();
  });
  busy.get();
  w.settle();
  CHECK(was_cancelled);
  CHECK(Waiter::waits == 1);
  CHECK(Waiter::alive == 0);
  Waiter::gate.reset();
}

TEST_CASE("a call that never starts gives back the references that it brings") {
  ObjectWorld w;
  const auto mutex = std::make_shared<AsyncMutex>();
  int ran = 0;
  w.third.expose("use", [&](const RRef<Counter>& /*counter*/) { ++ran; }, {.exclusive = mutex});
  auto guard = mutex->lock().get();
  auto counter = w.user.create<Counter(int)>("owner", 5);
  auto cancelled = w.user.call<void(RRef<Counter>)>("third", "use", counter);
  auto expires =
      w.user.peer("third").with({.timeout = 3s}).call<void(RRef<Counter>)>("use", counter);
  w.settle();
  CHECK(cancelled.cancel());
  counter = {};
  w.settle();
  CHECK(Counter::alive == 1);
  w.world.run_for(10s);
  CHECK(outcome(std::move(expires)).code() == ErrorCode::timed_out);
  guard.unlock();
  w.settle();
  CHECK(ran == 0);
  CHECK(Counter::alive == 0);
}

TEST_CASE("an object that a cancelled handler has created is there") {
  ObjectWorld w;
  std::optional<RRef<Counter>> made;
  w.third.expose("make", [&]() -> Future<void> {
    const CallContext context = *CallContext::current();
    made = w.third.create<Counter(int)>("owner", 5);
    co_await context.when_cancelled();
  });
  auto call = w.user.call<void()>("third", "make");
  w.world.run_for(0s);
  CHECK(call.cancel());
  w.settle();
  REQUIRE(made);
  CHECK(made->call<&Counter::value>().get() == 5);
}

}  // namespace rref_cancelling_test
}  // namespace batchrpc
