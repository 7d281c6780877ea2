#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/log.hpp"

namespace batchrpc {

/// Lines of one kind, of which others could have any number written: a few at once, then one in ten
/// seconds. The next that is written says how many were left out. Thread-safe.
class LogLimit {
 public:
  static constexpr Duration kPause = std::chrono::seconds(10);

  explicit LogLimit(int at_once = 5) noexcept : at_once_(at_once) {}

  /// Writes the line to `log`, or leaves it out. `now` is of the loop's clock.
  void write(const Log& log, LogLevel level, TimePoint now, std::string_view line);

 private:
  const int at_once_;
  std::mutex mutex_;
  int left_ = at_once_;       // that may be written at once
  TimePoint counted_from_{};  // the pause after which there is one more
  std::uint64_t left_out_ = 0;
};

}  // namespace batchrpc
