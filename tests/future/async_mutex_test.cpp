#include "batchrpc/future/async_mutex.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/future/when_all.hpp"
#include "future/virtual_wait.hpp"

using namespace batchrpc;
using namespace std::chrono_literals;

namespace async_mutex_test {

using Guard = AsyncMutex::Guard;

static_assert(!std::is_copy_constructible_v<Guard> && !std::is_copy_assignable_v<Guard>);
static_assert(std::is_nothrow_move_constructible_v<Guard>);
static_assert(std::is_nothrow_move_assignable_v<Guard>);
static_assert(!std::is_copy_constructible_v<AsyncMutex> &&
              !std::is_move_constructible_v<AsyncMutex>);

constexpr int kMany = 100'000;

bool is_free(AsyncMutex& mutex) { return mutex.try_lock().has_value(); }

/// Notes `number` while it has the lock, which it keeps until `gate` is ready.
Future<void> note(AsyncMutex& mutex, std::vector<int>& order, int number, Future<void> gate) {
  const Guard guard = co_await mutex.lock();
  order.push_back(number);
  co_await std::move(gate);
}

/// What only one at a time may be in.
class Room {
 public:
  void enter() { crowded_ = crowded_ || inside_.exchange(true); }
  void leave() {
    ++visits_;  // not atomic: the thread sanitizer would see two at once
    inside_ = false;
  }
  [[nodiscard]] bool was_crowded() const { return crowded_; }
  [[nodiscard]] int visits() const { return visits_; }

 private:
  std::atomic<bool> inside_{false};
  std::atomic<bool> crowded_{false};
  int visits_ = 0;
};

TEST_CASE("A lock that nobody has is there at once, and is given back with its guard") {
  AsyncMutex mutex;
  {
    auto first = mutex.lock();
    REQUIRE(first.ready());
    const Guard guard = std::move(first).get();
    CHECK(guard);
    CHECK_FALSE(mutex.try_lock());
    CHECK_FALSE(mutex.lock().ready());
  }
  CHECK(is_free(mutex));
}

TEST_CASE("A guard is given back once: early, when assigned to, or by whom it was moved to") {
  AsyncMutex mutex;
  Guard guard = mutex.lock().get();
  guard.unlock();
  CHECK_FALSE(guard);
  guard.unlock();
  CHECK(is_free(mutex));

  guard = mutex.lock().get();
  Guard other = std::move(guard);
  CHECK_FALSE(guard);  // NOLINT(bugprone-use-after-move)
  CHECK_FALSE(is_free(mutex));
  AsyncMutex another;
  other = another.lock().get();
  CHECK(is_free(mutex));
  CHECK_FALSE(is_free(another));
  Guard& same = other;
  other = std::move(same);
  CHECK(other);
  other = Guard();
  CHECK(is_free(another));
}

TEST_CASE("try_lock takes a lock that nobody has, and never one that others wait for") {
  AsyncMutex mutex;
  auto guard = mutex.try_lock();
  REQUIRE(guard);
  CHECK_FALSE(mutex.try_lock());
  const auto waits = mutex.lock();
  guard.reset();
  CHECK(waits.ready());
  CHECK_FALSE(mutex.try_lock());
}

TEST_CASE("The lock is granted in the order in which it was asked for, however that is done") {
  AsyncMutex mutex;
  std::vector<int> order;
  Guard first = mutex.lock().get();
  mutex.lock().then([&](Guard) { order.push_back(0); });
  Promise<void> gate;
  auto coroutine = note(mutex, order, 1, gate.get_future());
  auto third = mutex.lock();
  mutex.lock().then([&](Guard&&) { order.push_back(3); });
  mutex.lock().then([&](const Result<Guard>& guard) { order.push_back(guard ? 4 : -1); });
  CHECK(order.empty());

  first.unlock();
  CHECK(order == std::vector<int>{0, 1});
  CHECK_FALSE(third.ready());
  gate.set_value();
  CHECK(coroutine.ready());
  REQUIRE(third.ready());
  CHECK(order.size() == 2);
  std::move(third).get().unlock();
  CHECK(order == std::vector<int>{0, 1, 3, 4});
  CHECK(is_free(mutex));
}

TEST_CASE("A callback that passes its guard on keeps the lock") {
  AsyncMutex mutex;
  Guard kept;
  mutex.lock().then([&](Guard guard) { kept = std::move(guard); });
  auto passed = mutex.lock().then([](Guard guard) { return guard; });
  CHECK_FALSE(passed.ready());
  kept.unlock();
  REQUIRE(passed.ready());
  CHECK_FALSE(is_free(mutex));
  std::move(passed).get();
  CHECK(is_free(mutex));
}

TEST_CASE("A callback or coroutine that throws gives the lock back") {
  AsyncMutex mutex;
  CHECK_THROWS_AS(mutex.lock().then([](Guard) { throw 1; }).get(), int);
  CHECK(is_free(mutex));
  const auto fails = [&]() -> Future<void> {
    const Guard guard = co_await mutex.lock();
    throw 2;
  };
  CHECK_THROWS_AS(fails().get(), int);
  CHECK(is_free(mutex));
}

TEST_CASE("A future of the lock that is dropped leaves it free, before and after it was granted") {
  AsyncMutex mutex;
  { const auto granted = mutex.lock(); }
  CHECK(is_free(mutex));

  Guard guard = mutex.lock().get();
  std::optional dropped(mutex.lock());
  const auto next = mutex.lock();
  dropped.reset();
  guard.unlock();
  CHECK(next.ready());

  auto also_dropped = std::make_optional(mutex.lock());
  mutex.lock().then([](Guard) {});
  std::optional<Future<Guard>> unlocking(std::in_place, mutex.lock());
  also_dropped.reset();
  CHECK_FALSE(is_free(mutex));
  unlocking.reset();
  CHECK_FALSE(is_free(mutex));
}

TEST_CASE("A wait for the lock that has timed out leaves it to others") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  AsyncMutex mutex;
  Guard guard = mutex.lock().get();
  {
    const auto impatient = mutex.lock();
    CHECK_FALSE(impatient.wait_for(1s));
  }
  context->after(1s, [&] { guard.unlock(); });
  CHECK(mutex.lock().get());
  CHECK(is_free(mutex));
}

TEST_CASE("Who waits gets the lock, and guards hold, though the mutex is destroyed") {
  auto mutex = std::make_optional<AsyncMutex>();
  Guard guard = mutex->lock().get();
  auto next = mutex->lock();
  auto last = mutex->lock();
  mutex.reset();
  CHECK_FALSE(next.ready());
  guard.unlock();
  REQUIRE(next.ready());
  CHECK_FALSE(last.ready());
  std::move(next).get().unlock();
  CHECK(last.ready());
}

TEST_CASE("A callback may ask for the lock that it has just given back, and wait for it") {
  AsyncMutex mutex;
  int behind = 0;
  auto guard = mutex.lock().get();
  auto done = mutex.lock().then([&](Guard own) {
    mutex.lock().then([&](Guard) { ++behind; });
    own.unlock();
    return static_cast<bool>(mutex.lock().get());
  });
  guard.unlock();
  CHECK(std::move(done).get());
  CHECK(behind == 1);
  CHECK(is_free(mutex));
}

TEST_CASE("A hundred thousand callbacks that give the lock back at once do not recurse") {
  AsyncMutex mutex;
  int ran = 0;
  Guard guard = mutex.lock().get();
  for (int i = 0; i < kMany; ++i)
    mutex.lock().then([&ran, i](Guard own) {
      ran += ran == i ? 1 : 0;
      own.unlock();
    });
  guard.unlock();
  CHECK(ran == kMany);
  CHECK(is_free(mutex));
}

TEST_CASE("A hundred thousand coroutines that give the lock back at once do not recurse") {
  AsyncMutex mutex;
  std::vector<int> order;
  Guard guard = mutex.lock().get();
  std::vector<Future<void>> all;
  for (int i = 0; i < kMany; ++i)
    all.push_back(note(mutex, order, i, make_ready_future()));
  guard.unlock();
  CHECK(order.size() == kMany);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(is_free(mutex));
}

TEST_CASE("A hundred thousand futures of the lock that were dropped do not recurse") {
  AsyncMutex mutex;
  Guard guard = mutex.lock().get();
  for (int i = 0; i < kMany; ++i)
    static_cast<void>(mutex.lock());
  const auto last = mutex.lock();
  guard.unlock();
  CHECK(last.ready());
}

TEST_CASE("A hundred thousand futures of the lock that are dropped one by one do not recurse") {
  AsyncMutex mutex;
  std::vector<Future<Guard>> all;
  for (int i = 0; i < kMany; ++i)
    all.push_back(mutex.lock());
  all.clear();
  CHECK(is_free(mutex));
}

TEST_CASE("Threads that wait, callbacks and coroutines are never in one room together",
          "[threads]") {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  AsyncMutex mutex;
  Room room;
  const auto visit = [](AsyncMutex& by, Room& where) -> Future<void> {
    const Guard guard = co_await by.lock();
    where.enter();
    where.leave();
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<Future<void>> mine;
      for (int i = 0; i < kEach; ++i) {
        if ((i + thread) % 4 == 0) {
          const Guard guard = mutex.lock().get();
          room.enter();
          room.leave();
        } else if ((i + thread) % 4 == 1) {
          mine.push_back(mutex.lock().then([&](Guard) {
            room.enter();
            room.leave();
          }));
        } else if ((i + thread) % 4 == 2) {
          mine.push_back(visit(mutex, room));
        } else {
          static_cast<void>(mutex.lock());  // dropped, waiting or granted
          if (const auto guard = mutex.try_lock()) {
            room.enter();
            room.leave();
          } else {
            mine.push_back(visit(mutex, room));
          }
        }
      }
      when_all(std::move(mine)).get();
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK_FALSE(room.was_crowded());
  CHECK(is_free(mutex));
  CHECK(room.visits() == kThreads * kEach);
}

TEST_CASE("A future of the lock is dropped while it is granted", "[threads]") {
  for (int i = 0; i < 500; ++i) {
    AsyncMutex mutex;
    std::optional<Guard> guard(mutex.lock().get());
    auto futures = std::make_optional<std::vector<Future<Guard>>>();
    for (int k = 0; k < 10; ++k)
      futures->push_back(mutex.lock());
    std::atomic<int> arrived{0};
    const auto meet = [&] {
      ++arrived;
      while (arrived < 2)
        std::this_thread::yield();
    };
    std::thread other([&] {
      meet();
      futures.reset();
    });
    meet();
    guard.reset();
    other.join();
    if (!is_free(mutex)) FAIL("the lock was lost in round " << i);
  }
}

}  // namespace async_mutex_test
