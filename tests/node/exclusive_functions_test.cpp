#include <malloc.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// Functions that are exposed with one AsyncMutex: ExposeOptions::exclusive.

namespace exclusive {
int refuse(const std::string& why) { throw std::runtime_error(why); }

/// Notes whether the lock is taken while it is decoded (d) and encoded (e): then in capitals.
struct Watched {
  int value = 0;
  static inline batchrpc::AsyncMutex* mutex = nullptr;
  static inline std::string seen;
  static void note(char what) {
    seen += mutex->try_lock() ? what : static_cast<char>(what + 'A' - 'a');
  }
};
}  // namespace exclusive

template <>
struct batchrpc::Codec<exclusive::Watched> {
  using Wire = int;
  static int encode(const exclusive::Watched& watched, Encoder& /*encoder*/) {
    exclusive::Watched::note('e');
    return watched.value;
  }
  static exclusive::Watched decode(int wire, Decoder& /*decoder*/) {
    exclusive::Watched::note('d');
    if (wire < 0) throw BadMessage("negative");
    return {wire};
  }
};

namespace batchrpc {
namespace exclusive_functions_test {

using namespace std::chrono_literals;
using test::outcome;

std::shared_ptr<AsyncMutex> new_mutex() { return std::make_shared<AsyncMutex>(); }

/// Node b has functions that share a lock, and note what they do.
struct Pair : test::NodePair {
  std::shared_ptr<AsyncMutex> mutex = new_mutex();
  std::vector<int> order;
  std::vector<Promise<int>> open;

  Pair() {
    const auto note = [this](int number) { order.push_back(number); };
    b.expose("note", note, {.exclusive = mutex});
    b.expose("note soon", note, {.short_handler = true, .exclusive = mutex});
    b.expose("hold",
             [this, note](int number) {
               note(number);
               return open.emplace_back().get_future();
             },
             {.exclusive = mutex});
    b.expose("free", [] { return 1; });
  }
  Future<void> note(int number) { return a.call<void(int)>("b", "note", number); }
  Future<void> note_soon(int number) { return a.call<void(int)>("b", "note soon", number); }
  Future<int> hold(int number) { return a.call<int(int)>("b", "hold", number); }
  [[nodiscard]] bool is_free() const { return mutex->try_lock().has_value(); }
};

TEST_CASE("calls of functions that share a lock run in the order in which they came") {
  Pair pair;
  std::vector<Future<void>> calls;
  AsyncMutex::Guard guard = pair.mutex->lock().get();
  for (int i = 0; i < 30; ++i)
    calls.push_back(i % 3 == 0 ? pair.note_soon(i) : pair.note(i));
  pair.world.run_for(1s);
  CHECK(pair.order.empty());
  CHECK(pair.a.call<int()>("b", "free").get() == 1);
  guard.unlock();
  for (auto& call : calls)
    call.get();
  CHECK(pair.order.size() == 30);
  CHECK(std::is_sorted(pair.order.begin(), pair.order.end()));
  CHECK(pair.is_free());
}

TEST_CASE("an asynchronous function has the lock until its future is ready") {
  Pair pair;
  auto first = pair.hold(0);
  auto second = pair.hold(1);
  auto third = pair.note_soon(2);
  pair.world.run_for(1s);
  CHECK(pair.order == std::vector<int>{0});
  CHECK_FALSE(pair.is_free());
  pair.open[0].set_value(5);
  CHECK(first.get() == 5);
  pair.world.run_for(1s);
  CHECK(pair.order == std::vector<int>{0, 1});
  pair.open[1].set_error(std::make_exception_ptr(std::runtime_error("failed")));
  CHECK(outcome(std::move(second)).code() == ErrorCode::remote_error);
  third.get();
  CHECK(pair.order == std::vector<int>{0, 1, 2});
  CHECK(pair.is_free());
}

TEST_CASE("a call has the lock from before its arguments are decoded until its answer is made") {
  Pair pair;
  using exclusive::Watched;
  Watched::mutex = pair.mutex.get();
  const auto echo = [](Watched value) { return value; };
  pair.b.expose("echo", echo, {.exclusive = pair.mutex});
  pair.b.expose("echo soon", echo, {.short_handler = true, .exclusive = pair.mutex});
  pair.b.expose("echo later", [](Watched value) -> Future<Watched> { co_return value; },
                {.exclusive = pair.mutex});
  for (const char* name : {"echo", "echo soon", "echo later"}) {
    Watched::seen.clear();
    CHECK(pair.a.call<Watched(Watched)>("b", name, Watched{5}).get().value == 5);
    CHECK(Watched::seen == "eDEd");
  }
}

TEST_CASE("whatever goes wrong with a call, the lock is free afterwards") {
  Pair pair;
  pair.b.expose<&exclusive::refuse>({.exclusive = pair.mutex});
  pair.b.expose("refuse soon", [](int) -> int { throw 1; },
                {.short_handler = true, .exclusive = pair.mutex});
  pair.b.expose("refuse at once", [](int) -> Future<int> { throw 1; }, {.exclusive = pair.mutex});
  pair.b.expose("coroutine",
                [](int value) -> Future<int> {
                  co_await make_ready_future();
                  throw value;
                },
                {.exclusive = pair.mutex});
  pair.b.expose("empty", [](int) { return Future<int>(); }, {.exclusive = pair.mutex});
  pair.b.expose("too large", [](int) { return std::string(100 << 20, 'x'); },
                {.exclusive = pair.mutex});
  exclusive::Watched::mutex = pair.mutex.get();
  pair.b.expose("no negative", [](const exclusive::Watched& watched) { return watched.value; },
                {.exclusive = pair.mutex});
  for (int round = 0; round < 2; ++round) {  // the second finds the lock taken
    AsyncMutex::Guard guard;
    if (round == 1) guard = pair.mutex->lock().get();
    std::vector<Future<int>> calls;
    calls.push_back(pair.a.call<&exclusive::refuse>("b", "because"));
    for (const char* name : {"refuse soon", "refuse at once", "coroutine", "empty"})
      calls.push_back(pair.a.call<int(int)>("b", name, 1));
    calls.push_back(
        pair.a.call<int(exclusive::Watched)>("b", "no negative", exclusive::Watched{-1}));
    auto large = pair.a.call<std::string(int)>("b", "too large", 1);
    auto broken = pair.hold(round);
    pair.world.run_for(1s);
    guard.unlock();
    for (auto& call : calls)
      CHECK_FALSE(outcome(std::move(call)));
    CHECK_FALSE(outcome(std::move(large)));
    pair.world.run_for(1s);
    CHECK_FALSE(pair.is_free());
    pair.open.clear();
    CHECK(outcome(std::move(broken)).code() == ErrorCode::broken_promise);
    CHECK(pair.is_free());
  }
}

TEST_CASE("notifications take their turn as well") {
  Pair pair;
  auto held = pair.hold(0);
  for (int i = 1; i < 4; ++i)
    pair.a.peer("b").notify<void(int)>(i % 2 == 0 ? "note" : "note soon", i);
  pair.world.run_for(1s);
  CHECK(pair.order.size() == 1);
  pair.open[0].set_value(1);
  pair.world.run_for(1s);
  CHECK(pair.order == std::vector<int>{0, 1, 2, 3});
  CHECK(held.get() == 1);
}

TEST_CASE("a call that waits for the lock runs though its function was taken back") {
  Pair pair;
  auto held = pair.hold(0);
  auto waits = pair.note(1);
  pair.world.run_for(1s);
  pair.b.unexpose("note");
  pair.open[0].set_value(1);
  waits.get();
  CHECK(outcome(pair.note(2)).code() == ErrorCode::not_found);
}

TEST_CASE(
    "calls whose caller has gone while they wait never run, and let the next have their turn") {
  Pair pair;
  const Node c = pair.world.join("c");
  auto first = pair.hold(0);
  auto lost = pair.note(1);
  pair.world.run_for(1ms);
  auto last = c.call<void(int)>("b", "note", 2);
  pair.world.run_for(1ms);
  pair.world.kill("a");
  pair.world.run_for(1s);
  pair.open[0].set_value(1);
  last.get();
  CHECK(pair.order == std::vector<int>{0, 2});
  CHECK(pair.is_free());
}

TEST_CASE("a node that ends lets calls that wait for the lock have their turn") {
  Pair pair;
  auto held = pair.hold(0);
  auto waits = pair.note(1);
  auto waits_too = pair.note_soon(2);
  pair.world.run_for(1ms);
  pair.world.loop->schedule(pair.world.loop->now() + 300ms, [&] { pair.open[0].set_value(5); });
  CHECK(pair.b.shutdown(10s).empty());
  CHECK(held.get() == 5);
  waits.get();
  waits_too.get();
  CHECK(pair.is_free());
}

TEST_CASE(
    "calls that wait for the lock to the end of their node fail with ShutDown, and never run") {
  Pair pair;
  auto held = pair.hold(0);
  std::vector<Future<void>> waiting;
  for (int i = 1; i < 5; ++i)
    waiting.push_back(i % 2 == 0 ? pair.note(i) : pair.note_soon(i));
  pair.world.run_for(1ms);
  CHECK(pair.b.shutdown(1s) ==
        std::vector<std::string>{"5 calls from a, not yet answered: hold, note (2 calls), note "
                                 "soon (2 calls); 4 of them have not started"});
  for (auto& call : waiting) {
    const auto result = outcome(std::move(call));
    CHECK(result.code() == ErrorCode::shut_down);
    CHECK_FALSE(test::may_have_run(result.error()));
  }
  CHECK_FALSE(outcome(std::move(held)));
  CHECK_FALSE(pair.is_free());
  pair.open[0].set_value(1);
  pair.world.run_for(1s);
  CHECK(pair.order == std::vector<int>{0});
  CHECK(pair.is_free());
}

TEST_CASE("a node that has ended keeps nothing of calls that waited for a lock") {
  test::VirtualWorld world;
  const auto mutex = new_mutex();
  const AsyncMutex::Guard guard = mutex->lock().get();
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = alive;
  {
    const Node a = world.root("a");
    const Node b = world.join("b");
    b.expose("f", [alive = std::move(alive)] { return *alive; }, {.exclusive = mutex});
    auto call = a.call<int()>("b", "f");
    world.run_for(1ms);
  }
  world.run_for(10s);
  CHECK(weak.expired());
}

TEST_CASE("nodes and programs that share a lock take turns, however many calls wait") {
  Pair pair;
  std::string order;
  const Node c = pair.world.join("c");
  c.expose("note", [&] { order += 'c'; }, {.exclusive = pair.mutex});
  pair.b.expose("write", [&] { order += 'b'; }, {.exclusive = pair.mutex});
  auto guard = pair.mutex->lock().get();
  std::vector<Future<void>> calls;
  for (int i = 0; i < 4; ++i)
    calls.push_back(pair.a.call<void()>("b", "write"));
  pair.world.run_for(1ms);
  for (int i = 0; i < 2; ++i)
    calls.push_back(pair.a.call<void()>("c", "note"));
  pair.world.run_for(1ms);
  auto own = pair.mutex->lock().then([&](AsyncMutex::Guard /*lock*/) { order += 'p'; });
  guard.unlock();
  for (auto& call : calls)
    call.get();
  CHECK(own.ready());
  CHECK(order == "bcpbcbb");
  CHECK(pair.is_free());
}

TEST_CASE("promise 4: calls that are cancelled while they wait for a lock leave nothing behind") {
  Pair pair;
  auto guard = pair.mutex->lock().get();
  const auto round = [&] {
    std::vector<Future<void>> calls;
    for (int i = 0; i < 1000; ++i)
      calls.push_back(pair.note(i));
    pair.world.run_for(1s);
    for (auto& call : calls)
      CHECK(call.cancel());
    calls.clear();
    pair.world.run_for(1s);
    return mallinfo2().uordblks;
  };
  const std::size_t first = round();
  std::size_t last = 0;
  for (int i = 0; i < 20; ++i)
    last = round();
  CHECK(last <= first + (std::size_t{64} << 10));
  auto next = pair.note(-1);
  guard.unlock();
  next.get();
  CHECK(pair.order == std::vector<int>{-1});
  CHECK(pair.is_free());
}

TEST_CASE("a Batcher's calls come in while another has its lock, and their batch waits for it") {
  Pair pair;
  std::vector<std::vector<int>> batches;
  const Batcher<int(int)> batcher({}, [&](std::vector<int> xs) {
    batches.push_back(xs);
    return xs;
  });
  pair.b.expose("gather", batcher, {.exclusive = pair.mutex});
  AsyncMutex::Guard guard = pair.mutex->lock().get();
  auto first = pair.a.call<int(int)>("b", "gather", 1);
  auto second = pair.a.call<int(int)>("b", "gather", 2);
  pair.world.run_for(1s);
  CHECK(batcher.statistics().queued == 2);
  CHECK(batches.empty());
  guard.unlock();
  CHECK(first.get() == 1);
  CHECK(second.get() == 2);
  CHECK(batches == std::vector<std::vector<int>>{{1, 2}});
  CHECK(pair.is_free());
}

TEST_CASE("a thousand calls that wait for the lock do not recurse when it comes") {
  Pair pair;
  std::vector<Future<void>> calls;
  AsyncMutex::Guard guard = pair.mutex->lock().get();
  for (int i = 0; i < 1000; ++i)
    calls.push_back(i % 2 == 0 ? pair.note(i) : pair.note_soon(i));
  pair.world.run_for(1s);
  SECTION("and runs them") {
    guard.unlock();
    for (auto& call : calls)
      call.get();
    CHECK(pair.order.size() == 1000);
  }
  SECTION("and their node has ended") {
    pair.b.shutdown(0s);
    guard.unlock();
    pair.world.run_for(1s);
    CHECK(pair.order.empty());
  }
  CHECK(pair.is_free());
}

}  // namespace exclusive_functions_test
}  // namespace batchrpc
