#include "batchrpc/base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using batchrpc::Log;
using batchrpc::LogLevel;

namespace log_test {

using Lines = std::vector<std::pair<LogLevel, std::string>>;

batchrpc::LogSink into(Lines& lines) {
  return [&lines](LogLevel level, std::string_view line) { lines.emplace_back(level, line); };
}

/// What `f` writes to standard error.
template <class F>
std::string standard_error_of(F&& f) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

TEST_CASE("Lines at or above the log's level reach its sink") {
  Lines lines;
  const Log log(LogLevel::info, into(lines));
  log.debug("too low");
  log.info("a");
  log.warning("b");
  log.error("c");
  log.write(LogLevel::off, "not a level to write at");
  CHECK(lines == Lines{{LogLevel::info, "a"}, {LogLevel::warning, "b"}, {LogLevel::error, "c"}});
  CHECK(log.enabled(LogLevel::info));
  CHECK_FALSE(log.enabled(LogLevel::debug));
}

TEST_CASE("A log that is off writes nothing") {
  Lines lines;
  const Log log(LogLevel::off, into(lines));
  log.error("a");
  CHECK(lines.empty());
  CHECK_FALSE(log.enabled(LogLevel::error));
}

TEST_CASE("A log's prefix begins its lines, and its copies share the sink") {
  Lines lines;
  const Log log(LogLevel::info, into(lines), "worker1");
  const Log copy = log;  // NOLINT: the copy is what is tested
  copy.info("hello");
  CHECK(lines == Lines{{LogLevel::info, "worker1: hello"}});
}

TEST_CASE("Without a sink, lines go to standard error with their level, as they are") {
  const std::string text = standard_error_of([] {
    const Log log(LogLevel::warning, nullptr, "worker1");
    log.info("not shown");
    log.warning("braces {} and %s stay");
  });
  CHECK_THAT(text, Catch::Contains("worker1: braces {} and %s stay") && Catch::Contains("warn"));
  CHECK_THAT(text, !Catch::Contains("not shown"));
}

TEST_CASE("What a terminal would obey is escaped in a line, so that a line stays one") {
  Lines lines;
  const Log log(LogLevel::info, into(lines), "node\n");
  log.info(std::string_view("peer 'a\nb\r\x1b[2J\0\x7f' caf\xc3\xa9", 23));
  log.info("peer 'evil\xE2\x80\xAEtxt\xff'");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].second == "node\\n: peer 'a\\nb\\r\\x1b[2J\\x00\\x7f' caf\xc3\xa9");
  CHECK(lines[1].second == "node\\n: peer 'evil\\u202etxt\\xff'");
}

TEST_CASE("A line of any length is cut to one that a log can take") {
  Lines lines;
  const Log log(LogLevel::info, into(lines));
  log.info("refused '" + std::string(1 << 20, '\x1b') + "'");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].second.size() <= (16U << 10));
  CHECK(lines[0].second.ends_with("..."));
}

}  // namespace log_test
