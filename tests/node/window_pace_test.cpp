#include "session/window_pace.hpp"

#include <sched.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <future>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

namespace batchrpc {
namespace window_pace_test {

using namespace std::chrono_literals;

/// After which answers, counted from 1, something is sent, of a window of `size` that never
/// shrinks.
std::vector<int> due(WindowPace pace, std::size_t size, int answers) {
  std::vector<int> when;
  for (int i = 1; i <= answers; ++i) {
    if (pace.is_due(size)) when.push_back(i);
  }
  return when;
}

TEST_CASE("what answers lead to is sent each time that a third of the window is answered") {
  CHECK(due(WindowPace(true), 96, 100) == std::vector<int>{32, 64, 96});
  CHECK(due(WindowPace(true), 48, 50) == std::vector<int>{16, 32, 48});
}

TEST_CASE("what less than 16 answers lead to is sent in one go") {
  CHECK(due(WindowPace(true), 1, 15).empty());
  CHECK(due(WindowPace(true), 8, 20) == std::vector<int>{16});
}

TEST_CASE("on a single processor all windows are sent in one go") {
  CHECK(due(WindowPace(false), 96, 1000).empty());
}

TEST_CASE(
    "the callee has the first calls that answers lead to while the caller does the last answers",
    "[threads]") {
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) < 2) {
    WARN("left out: there is only one processor");
    return;
  }
  constexpr std::size_t kWindow = 96;
  std::vector<Promise<int>> window;  // b's; answered all at once
  std::promise<void> came;
  std::promise<bool> in_time;
  std::size_t answered = 0;
  const Node b(test::real_root("b"));
  const Node a(test::real_joining(b, "a"));
  b.expose("first",
           [&window] {
             Future<int> answer = window.emplace_back().get_future();
             if (window.size() == kWindow) {
               for (Promise<int>& promise : window)
                 promise.set_value(1);
             }
             return answer;
           },
           {.short_handler = true});
  b.expose("next", [&came] { came.set_value(); });

  for (std::size_t i = 0; i < kWindow; ++i) {
    a.call<int()>("b", "first").then([&](int) {
      if (++answered == 1) a.peer("b").notify<void()>("next");
      if (answered == kWindow)
        in_time.set_value(came.get_future().wait_for(20s) == std::future_status::ready);
    });
  }
  auto result = in_time.get_future();
  REQUIRE(result.wait_for(60s) == std::future_status::ready);
  CHECK(result.get());
}

}  // namespace window_pace_test
}  // namespace batchrpc
