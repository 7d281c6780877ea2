#pragma once

#include <cstdint>

#include "batchrpc/transport/loop.hpp"
#include "transport/tick_counter.hpp"

namespace batchrpc {

/// Ticks of a loop, read without the loop if they come from the processor's counter. The loop must
/// outlive it.
class Stopwatch {
 public:
  explicit Stopwatch(const Loop& loop) noexcept : loop_(&loop), counter_(loop.tick_counter()) {}

  /// The same as Loop::ticks() and time_of(), in ns. @{
  [[nodiscard]] std::uint64_t ticks() const noexcept {
    return counter_ != nullptr ? counter_->ticks() : loop_->ticks();
  }
  [[nodiscard]] std::uint64_t between(std::uint64_t earlier, std::uint64_t later) const noexcept {
    if (counter_ != nullptr) return counter_->nanoseconds(later - earlier);
    return static_cast<std::uint64_t>(loop_->time_of(later - earlier).count());
  }
  /// @}

 private:
  const Loop* loop_;
  const detail::TickCounter* counter_;  // null: the loop has its own ticks
};

}  // namespace batchrpc
