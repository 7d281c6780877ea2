#include "batchrpc/future/async_semaphore.hpp"

#include <deque>
#include <mutex>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

// The state that a semaphore and its guards share. Requests wait only while guards exist, and these
// keep it alive. So no request is waiting when it is destroyed.
class AsyncSemaphore::Core {
 public:
  using State = detail::State<Guard>;

  explicit Core(std::size_t places) : free_(places) {}

  /// Takes a place. Returns false if none is free.
  bool try_take() {
    const std::lock_guard lock(mutex_);
    return take();
  }

  /// The same, but if none is free it sets `waiting` to the state that will get a place.
  bool take_or_wait(detail::Ref<State>& waiting) {
    const std::lock_guard lock(mutex_);
    if (take()) return true;
    detail::Ref<State> state(new State(1));
    waiting_.push_back(state);
    waiting = std::move(state);
    return false;
  }

  static void give_back(std::shared_ptr<Core> core) noexcept {
    while (detail::Ref<State> next = core->take_next()) {
      // Skips dropped futures. They would release the place from inside this function, each nested
      // in the one before. (A future that another thread drops from now on still does so.)
      if (next->holds_all(1)) continue;
      next->store(Guard(std::move(core)));
      next.release()->complete();
      return;
    }
  }

 private:
  // The caller must hold the lock.
  bool take() {
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  /// The state that gets the place next. If there is none, the place is free.
  detail::Ref<State> take_next() noexcept {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      ++free_;
      return {};
    }
    detail::Ref<State> next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  std::mutex mutex_;
  std::size_t free_;
  std::deque<detail::Ref<State>> waiting_;
};

AsyncSemaphore::AsyncSemaphore(std::size_t places) : core_(std::make_shared<Core>(places)) {
  if (places == 0) throw InvalidArgument("AsyncSemaphore: it needs at least one place");
}

AsyncSemaphore::~AsyncSemaphore() = default;

Future<AsyncSemaphore::Guard> AsyncSemaphore::acquire() {
  detail::Ref<Core::State> waiting;
  if (core_->take_or_wait(waiting)) return make_ready_future(Guard(core_));
  return detail::FutureAccess::make(std::move(waiting));
}

std::optional<AsyncSemaphore::Guard> AsyncSemaphore::try_acquire() {
  if (!core_->try_take()) return std::nullopt;
  return Guard(core_);
}

void AsyncSemaphore::Guard::unlock() noexcept {
  if (core_) Core::give_back(std::move(core_));
}

}  // namespace batchrpc
