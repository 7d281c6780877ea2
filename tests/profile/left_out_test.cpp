#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "batchrpc/call/call_recording.hpp"
#include "batchrpc/profile.hpp"
#include "profile/gathering.hpp"
#include "profile/profiled_pair.hpp"
#include "profile/sample_records.hpp"
#include "recording/call_store.hpp"

// What a recording has no room for, and that all of it is counted.
namespace batchrpc {
namespace left_out_test {

using namespace std::chrono_literals;

using Pair = test::ProfiledPair;
using detail::CallRecording;

// Of 3 events, of which 5 more had been left out before.
CallRecord crowded_call(test::SampleWorld& world) {
  CallRecord call = world.call("f", 0, 1, 0us);
  test::SampleWorld::run(call, "mul", 1us, 2us);
  test::SampleWorld::nest(call, world.call("g", 1, 2, 17us)).left_out = 4;
  call.left_out = 1;
  return call;
}

TEST_CASE("what there is no room for is counted") {
  Pair pair;
  const Profiler profiler(*pair.a, {.max_events = 3});
  for (int i = 0; i < 10; ++i)
    pair.a->call<int(int)>("b", "slow", 0).get();
  CHECK(profiler.recording().calls.size() == 3);
  CHECK(profiler.recording().left_out == 7);
}

TEST_CASE("a handler that causes more than a reply tells of is counted, and answered") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [] {});
  pair.b->expose("many", [&]() -> Future<int> {
    std::vector<Future<void>> calls;
    for (int i = 0; i < 5000; ++i)
      calls.push_back(pair.b->call<void()>("c", "leaf"));
    return when_all(std::move(calls)).then([] { return 1; });
  });
  const Profiler profiler(*pair.a);
  CHECK(pair.a->call<int()>("b", "many").get() == 1);
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(recording.calls[0].calls.size() == 4096);
  CHECK(recording.calls[0].left_out == 5000 - 4096);
}

TEST_CASE("calls of calls that go too deep are cut off, and counted") {
  Pair pair;
  const auto down = [](Node& from, const char* to) {
    from.expose("down", [&from, to](int levels) -> Future<int> {
      if (levels == 0) return make_ready_future(0);
      return from.call<int(int)>(to, "down", levels - 1).then([](int n) { return n + 1; });
    });
  };
  down(*pair.a, "b");
  down(*pair.b, "a");
  const Node c = pair.world.join("c");
  const Profiler profiler(c);
  CHECK(c.call<int(int)>("b", "down", 20).get() == 20);
  const Recording recording = profiler.recording();
  std::size_t depth = 0;
  std::uint64_t left_out = 0;
  for (const CallRecord* call = &recording.calls.back(); call != nullptr;
       call = call->calls.empty() ? nullptr : &call->calls[0]) {
    ++depth;
    left_out += call->left_out;
  }
  CHECK(depth == 1 + CallRecording::kMaxDepth);
  CHECK(depth + left_out == 21);
}

TEST_CASE("what was left out of a call that is lost is counted with it") {
  test::SampleWorld world;
  const auto loop = test::VirtualWorld().loop;

  CallStore store(3, true);
  store.add(crowded_call(world));
  store.add(crowded_call(world));
  CHECK(store.left_out() == 8);
  CHECK(store.events(0) == 8);

  CallRecording handler(loop, true);
  for (std::size_t i = 0; i < CallRecording::kMaxEvents; ++i)
    handler.add(OperatorRecord{});
  handler.add(crowded_call(world));
  CHECK(handler.finish().left_out == 8);

  profile::GatheredPeer peer(3);
  profile::Told told;
  told.stores[0].calls = {crowded_call(world), crowded_call(world)};
  peer.take(1, std::move(told));
  REQUIRE(peer.recording().calls.size() == 1);
  CHECK(detail::events_of(peer.recording().calls[0]) == 3);
  CHECK(peer.recording().left_out == 8);
}

CallRecord told_of(CallRecording& run, std::size_t room, bool operators) {
  CallRecording row(test::VirtualWorld().loop, operators);
  for (std::size_t i = room; i < CallRecording::kMaxEvents; ++i)
    row.add(CallRecord());
  const BatchRecord batch{.number = 1, .rows = 1};
  row.note_run(&batch, run.take(), false);
  return row.finish();
}

TEST_CASE("what a batch's run has left out is counted once") {
  test::SampleWorld world;
  const auto left_out_of = [&](std::size_t room) {
    CallRecording run(test::VirtualWorld().loop, true);
    run.add(OperatorRecord());
    run.add(crowded_call(world));
    const CallRecord told = told_of(run, room, true);
    std::uint64_t left_out = told.left_out;
    for (const CallRecord& call : told.calls)
      left_out += detail::all_events_of(call) - detail::events_of(call);
    return left_out;
  };
  CHECK(left_out_of(4) == 5);
  CHECK(left_out_of(1) == 8);
  CHECK(left_out_of(0) == 9);
}

TEST_CASE(
    "operators that ran for others are not counted by who wants none, nor put in its record") {
  test::SampleWorld world;
  CallRecording run(test::VirtualWorld().loop, true);
  run.add(world.call("g", 1, 2, 0us));
  for (std::size_t i = 0; i < CallRecording::kMaxEvents + 904; ++i)
    run.add(OperatorRecord());
  const CallRecord told = told_of(run, 1, false);
  CHECK(told.calls.size() == CallRecording::kMaxEvents);
  CHECK(told.operators.empty());
  CHECK(told.left_out == 0);
}

TEST_CASE("operators that the caller alone wants are not counted by the callee's own profiler") {
  const auto own = std::make_shared<CallStore>(10, false);
  CallRecording handler(test::VirtualWorld().loop, true);
  handler.show(own, CallRecord(), true);
  for (std::size_t i = 0; i < CallRecording::kMaxEvents + 904; ++i)
    handler.add(OperatorRecord());
  CHECK(handler.finish().left_out == 904);
  handler.report_own(0);
  REQUIRE(own->size() == 1);
  CHECK(own->copy()[0].left_out == 0);
}

TEST_CASE("a reply without the details counts them") {
  test::SampleWorld world;
  CallRecord call = crowded_call(world);
  detail::leave_out_caused(call);
  CHECK(call.operators.empty());
  CHECK(call.calls.empty());
  CHECK(call.left_out == 7);
}

}  // namespace left_out_test
}  // namespace batchrpc
