#include "batchrpc/profile/call_times.hpp"

#include <catch2/catch.hpp>

#include "profile/sample_records.hpp"

namespace batchrpc {
namespace call_times_test {

using namespace std::chrono_literals;
using test::SampleWorld;

TEST_CASE("a callee's times are set back to its caller's clock") {
  SampleWorld world;
  world.ahead[1] = 3s;
  const CallRecord call = world.call("f", 0, 1, 0us);
  const CallTimes times = CallTimes::of(call, 3s);
  CHECK(times.callee_ahead == 3s);
  CHECK(times.called == SampleWorld::at(0us));
  CHECK(times.encoded == SampleWorld::at(1us));
  CHECK(times.sent == SampleWorld::at(3us));
  CHECK(times.received == SampleWorld::at(13us));
  CHECK(times.begun == SampleWorld::at(16us));
  CHECK(times.handled == SampleWorld::at(16us));
  CHECK(times.finished == SampleWorld::at(36us));
  CHECK(times.replied == SampleWorld::at(44us));
  CHECK(times.ended == SampleWorld::at(46us));
}

TEST_CASE("without an offset both ways of a call take equally long") {
  SampleWorld world;
  world.ahead[1] = -8s;
  const CallTimes times = CallTimes::of(world.call("f", 0, 1, 0us));
  CHECK(times.received - times.sent == 9us);
  CHECK(times.replied - times.finished == 9us);
  CHECK(times.finished - times.received == 23us);
  CHECK(times.callee_ahead == -8s + 1us);
}

TEST_CASE("an offset that is off moves all of the callee's times by as little as puts them right") {
  SampleWorld world;
  const CallRecord call = world.call("f", 0, 1, 0us);
  const CallTimes early = CallTimes::of(call, 15us);
  CHECK(early.received == early.sent);
  CHECK(early.finished - early.received == 23us);
  CHECK(early.callee_ahead == 10us);
  const CallTimes late = CallTimes::of(call, -15us);
  CHECK(late.finished == late.replied);
  CHECK(late.finished - late.received == 23us);
  CHECK(late.callee_ahead == -8us);
}

TEST_CASE("a stay that is longer than its call is cut off") {
  SampleWorld world;
  CallRecord call = world.call("f", 0, 1, 0us);
  call.finished += 1s;
  const CallTimes times = CallTimes::of(call, 0us);
  CHECK(times.received == times.sent);
  CHECK(times.begun - times.received == 3us);
  CHECK(times.finished == times.replied);
  CHECK(times.ended == SampleWorld::at(46us));
}

TEST_CASE("a callee's times after its call had ended are told as they are, beside the phases") {
  SampleWorld world;
  world.ahead[1] = 3s;
  CallRecord call = world.call("f", 0, 1, 0us);
  call.replied = TimePoint();
  call.ended = SampleWorld::at(20us);  // in a timeout
  const CallTimes times = CallTimes::of(call, 3s);
  CHECK(times.received == SampleWorld::at(13us));
  CHECK(times.begun == SampleWorld::at(16us));
  CHECK(times.finished == SampleWorld::at(20us));
  CHECK(times.callee.received == SampleWorld::at(13us));
  CHECK(times.callee.begun == SampleWorld::at(16us));
  CHECK(times.callee.finished == SampleWorld::at(36us));
  call.ended = SampleWorld::at(5us);
  CHECK(CallTimes::of(call, 3s).received == SampleWorld::at(5us));
  CHECK(CallTimes::of(call, 3s).callee.begun == SampleWorld::at(16us));
  const CallTimes too_far = CallTimes::of(call, 4s);
  CHECK(too_far.callee.received == too_far.sent);
  CHECK(too_far.callee.finished == too_far.sent + 23us);
}

TEST_CASE("a time that is not known counts as the next one") {
  SampleWorld world;
  CallRecord call = world.call("f", 0, 1, 0us);
  call.begun = {};
  call.encoded = {};
  const CallTimes times = CallTimes::of(call, 0us);
  CHECK(times.encoded == times.sent);
  CHECK(times.begun == times.finished);
  CHECK(times.received == SampleWorld::at(13us));
}

TEST_CASE("a call under way has got as far as it is known to have") {
  CallRecord call;
  call.called = SampleWorld::at(0us);
  CHECK(CallTimes::of(call).ended == call.called);
  call.sent = SampleWorld::at(5us);
  CHECK(CallTimes::of(call).ended == call.sent);
  CHECK(CallTimes::of(CallRecord{}).ended == TimePoint{});
}

}  // namespace call_times_test
}  // namespace batchrpc
