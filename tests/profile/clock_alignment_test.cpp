#include "batchrpc/profile/clock_alignment.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/profile/call_phases.hpp"
#include "profile/sample_records.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace clock_alignment_test {

using namespace std::chrono_literals;
using test::SampleWorld;

Duration off_by(const ClockOffset& offset, Duration truth) {
  return std::chrono::abs(offset.offset - truth);
}

// Calls from one node to another, with random times on the way.
void add_calls(Recording& recording, SampleWorld& world, int caller, int callee, int count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(caller * 10 + callee));
  for (int i = 0; i < count; ++i) {
    CallPhases phases = SampleWorld::kUsual;
    phases.wire = 5us + Duration(random() % 50'000);
    phases.reply = 5us + Duration(random() % 50'000);
    recording.calls.push_back(world.call("f", caller, callee, i * 200us, phases));
  }
}

TEST_CASE("a clock that is 3 s ahead is found to be, within the error that is said") {
  SampleWorld world;
  world.ahead[1] = 3s;
  Recording recording{.node = "w0"};
  add_calls(recording, world, 0, 1, 1);
  const ClockAlignment one(recording);
  REQUIRE(one.find("w1") != nullptr);
  CHECK(one.find("w1")->known);
  CHECK(one.find("w1")->samples == 1);
  CHECK(off_by(*one.find("w1"), 3s) <= one.find("w1")->error);

  add_calls(recording, world, 0, 1, 200);
  const ClockAlignment many(recording);
  CHECK(many.find("w1")->samples == 201);
  CHECK(off_by(*many.find("w1"), 3s) <= many.find("w1")->error);
  CHECK(many.find("w1")->error < 8us);
  CHECK(many.find("w1")->error < one.find("w1")->error);
  const Duration off = many.align("w1", world.on(1, 7ms)) - SampleWorld::at(7ms);
  CHECK(std::chrono::abs(off) <= many.find("w1")->error);
}

TEST_CASE("calls of both directions tell of the same two clocks") {
  SampleWorld world;
  world.ahead[0] = 2s;
  world.ahead[1] = -1s;
  Recording recording{.node = "w1"};
  add_calls(recording, world, 0, 1, 3);
  add_calls(recording, world, 1, 0, 4);
  const ClockAlignment alignment(recording);
  CHECK(alignment.offsets().front().node == "w1");
  CHECK(alignment.offsets().front().error == 0us);
  CHECK(alignment.find("w0")->samples == 7);
  CHECK(off_by(*alignment.find("w0"), 3s) <= alignment.find("w0")->error);
  const auto ahead = alignment.callee_ahead(recording.calls.front());
  REQUIRE(ahead);
  CHECK(*ahead == -alignment.find("w0")->offset);
}

TEST_CASE("clocks are followed along a chain of nodes, and errors add up") {
  SampleWorld world;
  world.ahead[1] = 3s;
  world.ahead[2] = -50s;
  Recording recording{.node = "w0"};
  CallRecord outer = world.call("f", 0, 1, 0us, {.wire = 10us, .handler = 100us, .reply = 30us});
  SampleWorld::nest(outer, world.call("g", 1, 2, 20us));
  recording.calls.push_back(outer);
  const ClockAlignment alignment(recording);
  const ClockOffset& w1 = *alignment.find("w1");
  const ClockOffset& w2 = *alignment.find("w2");
  CHECK(w1.error == 20us);
  CHECK(w2.error == 20us + 9us);
  CHECK(off_by(w1, 3s) <= w1.error);
  CHECK(off_by(w2, -50s) <= w2.error);
}

TEST_CASE("of two ways to a node the one with less error is taken") {
  SampleWorld world;
  world.ahead[2] = 1s;
  Recording recording{.node = "w0"};
  recording.calls.push_back(world.call("f", 0, 2, 0us, {.wire = 500us, .reply = 100us}));
  recording.calls.push_back(world.call("f", 0, 1, 0us, {.wire = 10us, .reply = 10us}));
  recording.calls.push_back(world.call("f", 1, 2, 0us, {.wire = 10us, .reply = 10us}));
  const ClockAlignment alignment(recording);
  CHECK(alignment.find("w2")->error == 20us);
  CHECK(alignment.find("w2")->offset == 1s);
}

TEST_CASE("a node that no call links to the reference is not known") {
  SampleWorld world;
  world.ahead[3] = 1s;
  Recording recording{.node = "w0"};
  recording.calls.push_back(world.call("f", 0, 1, 0us));
  recording.calls.push_back(world.call("f", 2, 3, 0us));
  CallRecord failed = world.call("f", 0, 2, 0us);
  test::lose_callee(failed);
  recording.calls.push_back(failed);
  const ClockAlignment alignment(recording);
  CHECK(alignment.find("w1")->known);
  CHECK_FALSE(alignment.find("w2")->known);
  CHECK_FALSE(alignment.find("w3")->known);
  CHECK(alignment.find("w3")->offset == 0us);
  CHECK(alignment.align("w3", SampleWorld::at(5us)) == SampleWorld::at(5us));
  CHECK_FALSE(alignment.callee_ahead(recording.calls[1]));
  CHECK(alignment.find("w9") == nullptr);
}

TEST_CASE("one call whose times are wrong is outvoted") {
  SampleWorld world;
  Recording recording{.node = "w0"};
  add_calls(recording, world, 0, 1, 5);
  world.ahead[1] = 9s;
  add_calls(recording, world, 0, 1, 1);
  CHECK(ClockAlignment(recording).find("w1")->offset < 1ms);
}

TEST_CASE("the first caller's clock is the reference of a recording by a node without calls") {
  SampleWorld world;
  Recording recording{.node = "w9"};
  recording.calls.push_back(world.call("f", 1, 0, 0us));
  CHECK(ClockAlignment(recording).offsets().front().node == "w1");
  CHECK(ClockAlignment(Recording{}).offsets().empty());
}

TEST_CASE("a time that is not known stays so") {
  SampleWorld world;
  world.ahead[1] = 3s;
  Recording recording{.calls = {world.call("f", 0, 1, 0us)}, .node = "w0"};
  CHECK(ClockAlignment(recording).align("w1", TimePoint{}) == TimePoint{});
}

TEST_CASE("where clocks do not drift, no call needs to be moved to be in order") {
  SampleWorld world;
  world.ahead[1] = 3s;
  Recording recording{.node = "w0"};
  add_calls(recording, world, 0, 1, 500);
  const ClockAlignment alignment(recording);
  for (const CallRecord& call : recording.calls) {
    const auto ahead = alignment.callee_ahead(call);
    REQUIRE(CallTimes::of(call, ahead).callee_ahead == ahead);
  }
}

TEST_CASE("records that cannot be are aligned without harm") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Recording recording = test::random_recording(seed, 50);
    const ClockAlignment alignment(recording);
    profile::for_each_call(recording.calls, [&](const CallRecord& call, const CallRecord*) {
      const CallTimes times = CallTimes::of(call, alignment.callee_ahead(call));
      if (CallPhases::of(times).total() != call.ended - call.called) FAIL(seed);
    });
  }
}

}  // namespace clock_alignment_test
}  // namespace batchrpc
