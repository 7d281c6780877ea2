#include "base/log_limit.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace batchrpc {

void LogLimit::write(const Log& log, LogLevel level, TimePoint now, std::string_view line) {
  if (!log.enabled(level)) return;
  if (const auto passed = pass(now, line)) log.write(level, *passed);
}

std::optional<std::string> LogLimit::pass(TimePoint now, std::string_view line) {
  std::uint64_t left_out = 0;
  {
    const std::lock_guard lock(mutex_);
    if (left_ == at_once_) {
      counted_from_ = now;
    } else if (const auto pauses = (now - counted_from_) / kPause; pauses > 0) {
      left_ = static_cast<int>(std::min<Duration::rep>(at_once_, left_ + pauses));
      counted_from_ = left_ == at_once_ ? now : counted_from_ + pauses * kPause;
    }
    if (left_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    --left_;
    left_out = std::exchange(left_out_, 0);
  }
  if (left_out == 0) return std::string(line);
  return std::string(line) + " (and " + std::to_string(left_out) +
         (left_out == 1 ? " similar line was" : " similar lines were") + " suppressed before)";
}

}  // namespace batchrpc
