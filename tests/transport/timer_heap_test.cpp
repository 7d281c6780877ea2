#include "transport/timer_heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

namespace batchrpc::detail {
namespace timer_heap_test {

TimePoint at(std::int64_t microseconds) {
  return TimePoint(std::chrono::microseconds(microseconds));
}

TEST_CASE("timers come out ordered by time, then by the order in which they came") {
  TimerHeap heap;
  std::mt19937 random(3);
  std::vector<std::pair<std::int64_t, int>> expected;
  std::vector<std::pair<std::int64_t, int>> got;
  for (int i = 0; i < 5000; ++i) {
    const auto time = static_cast<std::int64_t>(random() % 100);
    expected.emplace_back(time, i);
    heap.push(at(time), [&got, time, i] { got.emplace_back(time, i); });
  }
  std::sort(expected.begin(), expected.end());
  while (!heap.empty())
    heap.pop()();
  CHECK(got == expected);
}

TEST_CASE("any order of pushing, removing and popping agrees with a sorted map") {
  TimerHeap heap;
  std::mt19937 random(11);
  std::map<std::pair<TimePoint, int>, TimerId> model;
  std::vector<TimerId> gone{0, 12345};
  int ran = -1;
  for (int i = 0; i < 50000; ++i) {
    const bool grow = (i / 5000) % 2 == 0;  // to some thousands and back
    const auto choice = random() % 10;
    if (choice < (grow ? 6U : 2U)) {
      const TimePoint when = at(static_cast<std::int64_t>(random() % 1000));
      model[{when, i}] = heap.push(when, [&ran, i] { ran = i; });
    } else if (choice < 8 && !model.empty()) {
      auto victim = model.lower_bound({at(static_cast<std::int64_t>(random() % 1000)), 0});
      if (victim == model.end()) victim = model.begin();
      CHECK(heap.remove(victim->second).has_value());
      gone.push_back(victim->second);
      model.erase(victim);
    } else if (choice < 9 && !model.empty()) {
      CHECK(heap.next() == model.begin()->first.first);
      heap.pop()();
      CHECK(ran == model.begin()->first.second);
      gone.push_back(model.begin()->second);
      model.erase(model.begin());
    } else {
      CHECK_FALSE(heap.remove(gone[random() % gone.size()]).has_value());
    }
    REQUIRE(heap.size() == model.size());
  }
}

/// Zero under sanitizers, which bring their own allocator.
std::size_t allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

TEST_CASE("a million timers that are set and cancelled leave no memory behind") {
  TimerHeap heap;
  std::vector<TimerId> window(1000, 0);
  const auto round = [&](int count) {
    for (int i = 0; i < count; ++i) {
      TimerId& slot = window[static_cast<std::size_t>(i) % window.size()];
      heap.remove(slot);
      slot = heap.push(at(3'600'000'000 + i), [] {});
    }
  };
  round(10'000);
  const std::size_t before = allocated();
  round(1'000'000);
  CHECK(heap.size() == 1000);
  CHECK(allocated() <= before + 64 * 1024);
}

TEST_CASE("memory follows the number of timers down again") {
  TimerHeap heap;
  std::vector<TimerId> timers(200'000);
  for (std::size_t i = 0; i < timers.size(); ++i)
    timers[i] = heap.push(at(1), [] {});
  const std::size_t full = allocated();
  std::mt19937 random(1);
  std::shuffle(timers.begin(), timers.end(), random);
  for (const TimerId timer : timers)
    REQUIRE(heap.remove(timer).has_value());
  CHECK(heap.empty());
  if (full != 0) CHECK(allocated() + 200'000 * 64 < full);
}

TEST_CASE("a removed timer's task is handed back whole") {
  TimerHeap heap;
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> watch = token;
  const TimerId timer = heap.push(at(1), [token = std::move(token)] {});
  {
    const auto task = heap.remove(timer);
    REQUIRE(task);
    CHECK_FALSE(watch.expired());
  }
  CHECK(watch.expired());
}

}  // namespace timer_heap_test
}  // namespace batchrpc::detail
