#include "batchrpc/profile/recording.hpp"

#include <catch2/catch.hpp>

#include "profile/sample_records.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace recording_test {

using namespace std::chrono_literals;
using test::SampleWorld;

std::size_t count(const Recording& recording) {
  std::size_t calls = 0;
  profile::for_each_call(recording.calls, [&](const CallRecord&, const CallRecord*) { ++calls; });
  return calls;
}

TraceContext test_span(std::uint64_t number) {
  TraceContext span;
  span.trace_id[0] = 1;
  for (std::size_t i = 0; i < 8; ++i)
    span.span_id[i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  return span;
}

TEST_CASE("two recordings become one with the calls of both") {
  SampleWorld world;
  Recording a{
      .calls = {world.call("f", 0, 1, 0us)}, .left_out = 2, .sampled = 1, .node = "w0", .rank = 0};
  Recording b{
      .calls = {world.call("g", 1, 2, 0us)}, .left_out = 3, .sampled = 10, .node = "w1", .rank = 1};
  merge(a, std::move(b));
  REQUIRE(a.calls.size() == 2);
  CHECK(a.calls[0].function == "f");
  CHECK(a.calls[1].function == "g");
  CHECK(a.left_out == 5);
  CHECK(a.sampled == 10);
  CHECK(a.node == "w0");
  CHECK(a.rank == 0);
  Recording nobody;
  merge(nobody, std::move(a));
  CHECK(nobody.node == "w0");
  CHECK(nobody.calls.size() == 2);
}

TEST_CASE("a call that is outermost in one and nested in the other is kept once, nested") {
  SampleWorld world;
  CallRecord outer = world.call("f", 0, 1, 0us);
  const CallRecord inner = SampleWorld::nest(outer, world.call("g", 1, 2, 17us));
  for (const bool nested_first : {true, false}) {
    Recording nested{.calls = {outer}};
    Recording root{.calls = {inner}};
    Recording& into = nested_first ? nested : root;
    merge(into, std::move(nested_first ? root : nested));
    REQUIRE(into.calls.size() == 1);
    CHECK(into.calls[0].function == "f");
    REQUIRE(into.calls[0].calls.size() == 1);
    CHECK(into.calls[0].calls[0].function == "g");
  }
}

TEST_CASE(
    "of two records of a call the one that tells more is kept, with what either says it caused") {
  SampleWorld world;
  CallRecord full = world.call("f", 0, 1, 0us);
  SampleWorld::run(full, "aten::add", 1us, 2us);
  CallRecord poor = full;
  test::lose_callee(poor);
  SampleWorld::nest(poor, world.call("g", 1, 2, 17us));
  Recording into{.calls = {poor}};
  merge(into, Recording{.calls = {full}});
  REQUIRE(into.calls.size() == 1);
  CHECK(into.calls[0].received == full.received);
  CHECK(into.calls[0].operators.size() == 1);
  CHECK(into.calls[0].calls.size() == 1);
}

TEST_CASE("of a call that has timed out each side is told by whoever knows it") {
  SampleWorld world;
  CallRecord callees = world.call("f", 0, 1, 0us, SampleWorld::kUsual, {.number = 3, .rows = 2});
  CallRecord callers = callees;
  test::lose_callee(callers);
  callers.replied = TimePoint();
  callers.error = "TimedOut";
  callers.parent = 42;
  callers.parent_is_external = true;
  test::lose_caller(callees);
  callees.error = "std::out_of_range";
  callees.caller.thread = 0;
  callees.bytes_in = 0;
  for (const bool callers_first : {true, false}) {
    Recording into{.calls = {callers_first ? callers : callees}};
    merge(into, Recording{.calls = {callers_first ? callees : callers}});
    REQUIRE(into.calls.size() == 1);
    const CallRecord& call = into.calls[0];
    CHECK(call.called == callers.called);
    CHECK(call.ended == callers.ended);
    CHECK(call.error == "TimedOut");
    CHECK(call.parent == 42);
    CHECK(call.parent_is_external);
    CHECK(call.caller.thread == callers.caller.thread);
    CHECK(call.bytes_in == callers.bytes_in);
    CHECK(call.received == callees.received);
    CHECK(call.finished == callees.finished);
    CHECK(call.callee.thread == callees.callee.thread);
    CHECK(call.batch.number == 3);
  }
}

TEST_CASE(
    "a notification that has failed has done so at its callee alone, whichever is merged first") {
  SampleWorld world;
  CallRecord callees = world.call("f", 0, 1, 0us);
  CallRecord callers = callees;
  test::lose_callee(callers);
  callers.replied = TimePoint();
  test::lose_caller(callees);
  callees.error = "std::out_of_range";
  for (const bool callers_first : {true, false}) {
    Recording into{.calls = {callers_first ? callers : callees}};
    merge(into, Recording{.calls = {callers_first ? callees : callers}});
    merge(into, Recording{.calls = {callers, callees}});
    REQUIRE(into.calls.size() == 1);
    CHECK(into.calls[0].error == "std::out_of_range");
    CHECK(into.calls[0].failed_at_callee_alone);
  }
}

TEST_CASE("a call that one record says ran for a batch did, whichever is merged first") {
  SampleWorld world;
  CallRecord own = world.call("f", 0, 1, 0us);
  CallRecord rows = own;
  rows.shared = true;
  for (const bool own_first : {true, false}) {
    Recording into{.calls = {own_first ? own : rows}};
    merge(into, Recording{.calls = {own_first ? rows : own}});
    REQUIRE(into.calls.size() == 1);
    CHECK(into.calls[0].shared);
  }
}

TEST_CASE("a call is below the one that it names as its parent, if that is there") {
  SampleWorld world;
  CallRecord outer = world.call("f", 0, 1, 0us);
  const CallRecord inner = SampleWorld::nest(outer, world.call("g", 1, 2, 17us));
  outer.calls.clear();
  CallRecord of_other = world.call("h", 0, 1, 0us);
  of_other.parent = 12345;
  CallRecord of_itself = world.call("i", 0, 1, 0us);
  of_itself.parent = of_itself.span.span_number();
  CallRecord external = inner;
  external.parent_is_external = true;
  SampleWorld::set_span(external, 77);
  Recording into{.calls = {inner, of_other, of_itself}};
  merge(into, Recording{.calls = {external, outer}});
  REQUIRE(into.calls.size() == 4);
  CHECK(into.calls[0].function == "h");
  CHECK(into.calls[1].function == "i");
  CHECK(into.calls[2].span.span_number() == 77);
  CHECK(into.calls[3].function == "f");
  REQUIRE(into.calls[3].calls.size() == 1);
  CHECK(into.calls[3].calls[0].function == "g");
}

TEST_CASE("calls without a span are all kept") {
  Recording into{.calls = {CallRecord{}}};
  merge(into, Recording{.calls = {CallRecord{}}});
  CHECK(into.calls.size() == 2);
}

TEST_CASE("records that say that two calls caused each other lose neither") {
  SampleWorld world;
  const CallRecord f = world.call("f", 0, 1, 0us);
  const CallRecord g = world.call("g", 1, 0, 0us);
  CallRecord f_of_g = g;
  f_of_g.calls = {f};
  CallRecord g_of_f = f;
  g_of_f.calls = {g};
  Recording into{.calls = {f_of_g}};
  merge(into, Recording{.calls = {g_of_f}});
  CHECK(count(into) == 2);
  CallRecord itself = f;
  itself.calls = {f};
  Recording alone{.calls = {itself}};
  merge(alone, Recording{});
  CHECK(count(alone) == 1);
}

TEST_CASE(
    "records that say that each caused the next make no more levels than can be gone through") {
  constexpr std::uint64_t kCalls = 100'000;
  for (const bool outer_first : {true, false}) {
    Recording into;
    Recording chain;
    for (std::uint64_t i = 1; i < kCalls; ++i) {
      const std::uint64_t number = outer_first ? i : kCalls - i;
      CallRecord outer;
      outer.span = test_span(number);
      CallRecord inner;
      inner.span = test_span(number + 1);
      outer.calls.push_back(std::move(inner));
      chain.calls.push_back(std::move(outer));
    }
    merge(into, std::move(chain));
    std::size_t calls = 0;
    std::size_t deepest = 0;
    const auto count = [&](const auto& self, const std::vector<CallRecord>& all,
                           std::size_t level) -> void {
      for (const CallRecord& call : all) {
        ++calls;
        deepest = std::max(deepest, level);
        self(self, call.calls, level + 1);
      }
    };
    count(count, into.calls, 1);
    CHECK(calls == kCalls);
    CHECK(deepest > 1);
    CHECK(deepest <= 64);
  }
}

TEST_CASE("a recording merged with itself stays as it is") {
  const Recording recording = test::random_recording(5, 100);
  Recording into = recording;
  merge(into, Recording(recording));
  CHECK(count(into) == count(recording));
  REQUIRE(into.calls.size() == recording.calls.size());
  for (std::size_t i = 0; i < into.calls.size(); ++i)
    CHECK(into.calls[i].calls.size() == recording.calls[i].calls.size());
}

}  // namespace recording_test
}  // namespace batchrpc
