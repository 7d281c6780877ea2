#include "base/log_limit.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

namespace batchrpc {
namespace log_limit_test {

using namespace std::chrono_literals;

struct Limited {
  std::vector<std::string> lines;
  Log log{LogLevel::info,
          [this](LogLevel /*level*/, std::string_view line) { lines.emplace_back(line); }};
  LogLimit limit;
  TimePoint now{1h};

  void write(int count) {
    for (int i = 0; i < count; ++i)
      limit.write(log, LogLevel::warning, now, "line");
  }
};

TEST_CASE("of many lines of a kind five are written at once, then one in ten seconds") {
  Limited limited;
  limited.write(1000);
  CHECK(limited.lines == std::vector<std::string>(5, "line"));
  for (int second = 1; second <= 60; ++second) {
    limited.now += 1s;
    limited.write(100);
  }
  CHECK(limited.lines.size() == 5 + 6);
}

TEST_CASE("the line after those that were left out says how many they were") {
  Limited limited;
  limited.write(5 + 1);
  limited.now += 10s;
  limited.write(5 + 1);
  limited.now += 10s;
  limited.write(1);
  REQUIRE(limited.lines.size() == 7);
  CHECK(limited.lines[5] == "line (and 1 similar line was suppressed before)");
  CHECK(limited.lines[6] == "line (and 5 similar lines were suppressed before)");
}

TEST_CASE("after a quiet time five lines may be written at once again, and no more") {
  Limited limited;
  limited.write(5);
  limited.now += 1h;
  limited.write(10);
  CHECK(limited.lines.size() == 10);
}

TEST_CASE("pauses are counted from the first line of a burst, not from the last") {
  Limited limited;
  limited.write(1);
  limited.now += 9s;
  limited.write(4);
  limited.now += 1s;
  limited.write(2);
  CHECK(limited.lines.size() == 6);
}

TEST_CASE("a line that another limit may suppress, too, says how many were suppressed here") {
  LogLimit limit(2);
  TimePoint now{};
  CHECK(limit.pass(now, "line") == "line");
  CHECK(limit.pass(now, "line") == "line");
  CHECK_FALSE(limit.pass(now, "line"));
  now += LogLimit::kPause;
  CHECK(limit.pass(now, "line") == "line (and 1 similar line was suppressed before)");
}

TEST_CASE("lines below the log's level count for nothing") {
  Limited limited;
  for (int i = 0; i < 100; ++i)
    limited.limit.write(limited.log, LogLevel::debug, limited.now, "detail");
  limited.write(5);
  CHECK(limited.lines == std::vector<std::string>(5, "line"));
}

}  // namespace log_limit_test
}  // namespace batchrpc
