#pragma once

#include <memory>
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
  EndInTurns(std::shared_ptr<Loop> loop, Work work)
      : loop_(std::move(loop)), work_(std::move(work)) {}
  EndInTurns(EndInTurns&&) = default;
  EndInTurns& operator=(EndInTurns&&) = delete;
  ~EndInTurns() {
    while (loop_ && !work_()) {
    }
  }

  void operator()() {
    if (work_()) {
      loop_ = nullptr;
      return;
    }
    const std::shared_ptr<Loop> loop = loop_;
    if (!loop->is_driving()) return;
    end_turn();
    try {
      loop->defer(std::move(*this));
    } catch (const std::bad_alloc&) {  // NOLINT: then the rest ends here
    }
  }

 private:
  std::shared_ptr<Loop> loop_;  // null: nothing is left, or another has taken over
  Work work_;
};

/// On the loop's thread, the first turn is now.
template <class Work>
void end_in_turns(std::shared_ptr<Loop> loop, Work work) {
  EndInTurns<Work>(std::move(loop), std::move(work))();
}

}  // namespace batchrpc::detail
