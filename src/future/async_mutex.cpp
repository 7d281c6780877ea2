#include "batchrpc/future/async_mutex.hpp"

#include <deque>
#include <mutex>

namespace batchrpc {

// The state that a mutex and its guards share. It is locked while a guard exists, and that guard
// keeps it alive. So no request is waiting when it is destroyed.
class AsyncMutex::Core {
 public:
  using State = detail::State<Guard>;

  /// Takes the lock. Returns false if the mutex is locked.
  bool try_take() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(locked_, true);
  }

  /// The same, but if locked it sets `waiting` to the state that will get the lock.
  bool take_or_wait(detail::Ref<State>& waiting) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(locked_, true)) return true;
    detail::Ref<State> state(new State(1));
    waiting_.push_back(state);
    waiting = std::move(state);
    return false;
  }

  static void give_back(std::shared_ptr<Core> core) noexcept {
    while (detail::Ref<State> next = core->take_next()) {
      // Skips dropped futures. They would release the lock from inside this function, each nested
      // in the one before. (A future that another thread drops from now on still does so.)
      if (next->holds_all(1)) continue;
      next->store(Guard(std::move(core)));
      next.release()->complete();
      return;
    }
  }

 private:
  /// The state that gets the lock next. Unlocks if there is none.
  detail::Ref<State> take_next() noexcept {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      locked_ = false;
      return {};
    }
    detail::Ref<State> next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  std::mutex mutex_;
  bool locked_ = false;
  std::deque<detail::Ref<State>> waiting_;
};

AsyncMutex::AsyncMutex() : core_(std::make_shared<Core>()) {}

AsyncMutex::~AsyncMutex() = default;

Future<AsyncMutex::Guard> AsyncMutex::lock() {
  detail::Ref<Core::State> waiting;
  if (core_->take_or_wait(waiting)) return make_ready_future(Guard(core_));
  return detail::FutureAccess::make(std::move(waiting));
}

std::optional<AsyncMutex::Guard> AsyncMutex::try_lock() {
  if (!core_->try_take()) return std::nullopt;
  return Guard(core_);
}

void AsyncMutex::Guard::unlock() noexcept {
  if (core_) Core::give_back(std::move(core_));
}

}  // namespace batchrpc
