#pragma once

#include <utility>

#include "batchrpc/transport/loop.hpp"

namespace batchrpc::detail {

/// A batcher's only timer. If it fires early, its task checks again. Not thread-safe.
class BatchTimer {
 public:
  /// Whether set() would change anything: no timer runs that early.
  [[nodiscard]] bool needs(TimePoint when) const noexcept {
    return when != TimePoint::max() && (timer_ == 0 || at_ > when);
  }
  /// Sets the timer to run `look`, which calls fired(), at `when`.
  void set(Loop& loop, TimePoint when, Task look) {
    cancel(loop);
    at_ = when;
    timer_ = loop.schedule(when, std::move(look));
  }
  void fired() noexcept { timer_ = 0; }
  void cancel(Loop& loop) {
    if (timer_ != 0) loop.cancel(std::exchange(timer_, 0));
  }

 private:
  TimerId timer_ = 0;  // 0: none
  TimePoint at_{};
};

}  // namespace batchrpc::detail
