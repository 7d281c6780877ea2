#include "node/retry_schedule.hpp"

#include <catch2/catch.hpp>
#include <chrono>

#include "batchrpc/base/error.hpp"
#include "batchrpc/testing.hpp"

namespace batchrpc {
namespace retry_schedule_test {

using namespace std::chrono_literals;

TEST_CASE("the attempts of a call share its time, and none has the node's default") {
  VirtualLoop loop;
  RetrySchedule schedule({.attempts = 3}, 10s, loop.now());
  schedule.begin_attempt();
  CHECK(schedule.time_for_attempt(loop) == 10s);
  loop.run_for(4s);
  schedule.begin_attempt();
  CHECK(schedule.time_for_attempt(loop) == 6s);
  CHECK_FALSE(schedule.is_used_up());
  CHECK(schedule.is_in_time(loop.now() + 5s));
  CHECK_FALSE(schedule.is_in_time(loop.now() + 6s));
  loop.run_for(6s);
  schedule.begin_attempt();
  CHECK(schedule.time_for_attempt(loop) < Duration::zero());
  CHECK(schedule.is_used_up());
  CHECK(schedule.attempts() == 3);
}

TEST_CASE("a call without a time-out has none in any attempt") {
  VirtualLoop loop;
  RetrySchedule schedule({.attempts = 2}, Duration::max(), loop.now());
  schedule.begin_attempt();
  CHECK(schedule.time_for_attempt(loop) == Duration::max());
  loop.run_for(1h);
  schedule.begin_attempt();
  CHECK(schedule.time_for_attempt(loop) == Duration::max());
  CHECK(schedule.is_in_time(loop.now() + 1h));
}

TEST_CASE("the pause between attempts doubles, up to a year") {
  RetrySchedule schedule({.attempts = 100, .backoff = 100ms}, Duration::max(), {});
  schedule.begin_attempt();
  CHECK(schedule.backoff() == 100ms);
  schedule.begin_attempt();
  CHECK(schedule.backoff() == 200ms);
  for (int i = 0; i < 90; ++i)
    schedule.begin_attempt();
  CHECK(schedule.backoff() == 24h * 365);
}

TEST_CASE("an error says whether its call may be tried again, and after which pause at least") {
  const RetrySchedule once({.attempts = 2}, 1s, {});
  const RetrySchedule idempotent({.attempts = 2, .idempotent = true}, 1s, {});
  CHECK(once.least_pause(NotSent("not sent")) == Duration::zero());
  CHECK(once.least_pause(ShutDown("before it began", false)) == Duration::zero());
  CHECK(once.least_pause(Overloaded("no room", 3s)) == Duration(3s));
  CHECK_FALSE(once.least_pause(PeerLost("lost", true)));
  CHECK(idempotent.least_pause(PeerLost("lost", true)) == Duration::zero());
  for (const RetrySchedule* schedule : {&once, &idempotent}) {
    CHECK_FALSE(schedule->least_pause(TimedOut("late", false)));
    CHECK_FALSE(schedule->least_pause(ShutDown("while it ran", true)));
    CHECK_FALSE(schedule->least_pause(InvalidArgument("wrong")));
  }
}

}  // namespace retry_schedule_test
}  // namespace batchrpc
