#pragma once

#include <new>
#include <utility>

#include "batchrpc/transport/loop.hpp"
#include "transport/turn_end.hpp"

namespace batchrpc::detail {

/// Ends many things, of which there may be millions, some in each turn of the loop. `Work` is a
/// `bool()` that ends some, and returns whether none is left; it must not throw. If nothing drives
/// the loop, if the loop ends, or if there is no memory for the task, all end at once.
template <class Work>
class EndInTurns {
 public:
  EndInTurns(Loop& loop, Work work) : loop_(&loop), work_(std::move(work)) {}
  EndInTurns(EndInTurns&& other) noexcept
      : loop_(std::exchange(other.loop_, nullptr)), work_(std::move(other.work_)) {}
  EndInTurns& operator=(EndInTurns&&) = delete;
  ~EndInTurns() {
    while (loop_ != nullptr && !work_()) {
    }
  }

  void operator()() {
    if (work_()) {
      loop_ = nullptr;
      return;
    }
    Loop& loop = *loop_;
    if (!loop.is_driving()) return;
    end_turn();
    try {
      loop.defer(std::move(*this));
    } catch (const std::bad_alloc&) {  // NOLINT: then the rest ends here
    }
  }

 private:
  Loop* loop_;  // which runs the task, or destroys it; null: nothing is left, or another took over
  Work work_;
};

/// On the loop's thread, the first turn is now.
template <class Work>
void end_in_turns(Loop& loop, Work work) {
  EndInTurns<Work>(loop, std::move(work))();
}

}  // namespace batchrpc::detail
