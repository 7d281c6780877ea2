#include "node/join_pace.hpp"

#include <catch2/catch.hpp>
#include <chrono>

namespace batchrpc {
namespace join_pace_test {

using namespace std::chrono_literals;

TEST_CASE("a node asks a silent root ever more rarely, but at its deadline") {
  JoinPace pace(1);
  const TimePoint start{1h};
  pace.set_deadline(start + 1h);
  Duration before{};
  for (int i = 0; i < 20; ++i) {
    const Duration pause = pace.after_silence(start) - start;
    CHECK(pause > before / 2);
    CHECK(pause >= 8ms);
    CHECK(pause <= 1200ms);
    before = pause;
  }
  CHECK(before >= 800ms);
  pace.set_deadline(start + 1ms);
  CHECK(pace.after_silence(start) == start + 1ms);
  CHECK_FALSE(pace.is_over(start));
  CHECK(pace.is_over(start + 1ms));
  CHECK(pace.time_left(start + 1s) == 1ms);
}

TEST_CASE("a node asks a root that refuses it for a while") {
  JoinPace pace(1);
  const TimePoint start{1h};
  pace.set_deadline(start + 10s);
  CHECK(pace.after_refusal(start, 2s) == start + 50ms);
  CHECK(pace.after_refusal(start + 1999ms, 2s) == start + 2049ms);
  CHECK_FALSE(pace.after_refusal(start + 2s, 2s));
  JoinPace short_of_time(1);
  short_of_time.set_deadline(start + 10ms);
  CHECK(short_of_time.after_refusal(start, 2s) == start + 10ms);
  CHECK_FALSE(short_of_time.after_refusal(start + 10ms, 2s));
}

TEST_CASE("nodes of different seeds pause for different times") {
  JoinPace one(1);
  JoinPace other(2);
  const Duration pause = one.between(1s, 2s);
  CHECK(pause >= 1s);
  CHECK(pause <= 2s);
  CHECK(pause != other.between(1s, 2s));
}

}  // namespace join_pace_test
}  // namespace batchrpc
