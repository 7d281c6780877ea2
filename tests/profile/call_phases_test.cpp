#include "batchrpc/profile/call_phases.hpp"

#include <catch2/catch.hpp>

#include "profile/sample_records.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace call_phases_test {

using namespace std::chrono_literals;
using test::SampleWorld;

TEST_CASE("phases are what a call spent its time on") {
  SampleWorld world;
  const CallPhases phases = CallPhases::of(world.call("f", 0, 1, 0us), 0us);
  CHECK(phases == SampleWorld::kUsual);
  CHECK(phases.total() == 46us);
}

TEST_CASE("a row waits for its batch") {
  SampleWorld world;
  CallPhases spent = SampleWorld::kUsual;
  spent.batch = 500us;
  const CallRecord row = world.call("f", 0, 1, 0us, spent, {.number = 3, .rows = 8});
  CHECK(CallPhases::of(row, 0us) == spent);
  CallRecord alone = row;
  alone.batch = {};
  CHECK(CallPhases::of(alone, 0us).batch == 0us);
  CHECK(CallPhases::of(alone, 0us).handler == 520us);
  CHECK(CallPhases::of(alone, 0us).total() == 546us);
}

TEST_CASE("what is remote is the wire's when the callee told nothing") {
  SampleWorld world;
  CallRecord call = world.call("f", 0, 1, 0us);
  test::lose_callee(call);
  CHECK(CallPhases::of(call) ==
        CallPhases{.encode = 1us, .queued = 2us, .wire = 41us, .decode = 2us});
}

TEST_CASE("a failed call's time is the phase's in which it failed") {
  SampleWorld world;
  CallRecord call = world.call("f", 0, 1, 0us);
  test::lose_callee(call);
  call.error = "TimedOut";
  call.replied = {};
  CHECK(CallPhases::of(call) == CallPhases{.encode = 1us, .queued = 2us, .wire = 43us});
  call.sent = {};
  CHECK(CallPhases::of(call) == CallPhases{.encode = 1us, .queued = 45us});
  call.encoded = {};
  CHECK(CallPhases::of(call) == CallPhases{.encode = 46us});
}

TEST_CASE("phases of any record add up to its time, and none is negative") {
  std::mt19937_64 random(1);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Recording recording = test::random_recording(seed, 100);
    profile::for_each_call(recording.calls, [&](const CallRecord& call, const CallRecord*) {
      const Duration ahead(static_cast<std::int64_t>(random() % 10'000'000'000) - 5'000'000'000);
      for (const auto& offset : {std::optional<Duration>{}, std::optional{ahead}}) {
        const CallPhases phases = CallPhases::of(call, offset);
        if (phases.total() != call.ended - call.called) FAIL("they do not add up: seed " << seed);
        for (const CallPhase& phase : kCallPhases) {
          if (phases.*phase.field < 0us) FAIL(phase.name << " is negative: seed " << seed);
        }
        if (call.batch.number == 0 && phases.batch != 0us) FAIL("a batch where there is none");
      }
    });
  }
}

}  // namespace call_phases_test
}  // namespace batchrpc
