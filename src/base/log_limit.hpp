#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/log.hpp"

namespace batchrpc {

/// Limits log lines of one kind that others could cause without end: a few at once, then one every
/// ten seconds. The next line that is written reports how many were suppressed. Thread-safe.
class LogLimit {
 public:
  static constexpr Duration kPause = std::chrono::seconds(10);

  explicit LogLimit(int at_once = 5) noexcept : at_once_(at_once) {}

  /// Writes the line to `log`, or suppresses it. `now` is a time of the loop's clock.
  void write(const Log& log, LogLevel level, TimePoint now, std::string_view line);
  /// Returns the line as it is to be written; nothing if it is suppressed. For lines with several
  /// limits.
  [[nodiscard]] std::optional<std::string> pass(TimePoint now, std::string_view line);

 private:
  const int at_once_;
  std::mutex mutex_;
  int left_ = at_once_;       // how many lines may be written now
  TimePoint counted_from_{};  // the start of the pause after which one more may be written
  std::uint64_t left_out_ = 0;
};

}  // namespace batchrpc
