#include <algorithm>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "env/env_driver.hpp"

namespace batchrpc {

// Whether it is done; false: the deadline has come.
bool VectorEnv::State::wait_until(std::unique_lock<std::mutex>& lock, std::function<bool()> done,
                                  TimePoint deadline) {
  while (!done()) {
    if (loop_->now() >= deadline) return false;
    Promise<void> promise;
    const Future<void> ready = promise.get_future();
    waiter_ = std::move(promise);
    waited_for_ = done;
    lock.unlock();
    if (deadline == TimePoint::max()) {
      ready.wait();
    } else {
      ready.wait_until(deadline);
    }
    lock.lock();
    waiter_.reset();
  }
  return true;
}

// Gives the lock up when somebody is woken.
void VectorEnv::State::wake(std::unique_lock<std::mutex>& lock) {
  if (!waiter_ || !waited_for_()) return;
  std::optional<Promise<void>> waiter = std::exchange(waiter_, std::nullopt);
  lock.unlock();
  waiter->set_value();
}

std::size_t VectorEnv::State::count(Phase phase) const noexcept {
  return static_cast<std::size_t>(std::ranges::count(groups_, phase, &Group::phase));
}

bool VectorEnv::State::any(std::size_t buffer, Phase phase) const noexcept {
  for (std::size_t w = 0; w < worker_count(); ++w) {
    if (groups_[buffer * worker_count() + w].phase == phase) return true;
  }
  return false;
}

bool VectorEnv::State::any_live() const noexcept {
  return std::ranges::any_of(workers_, [](const Worker& worker) { return worker.told.live; });
}

void VectorEnv::State::throw_nothing() const {
  std::string gone;
  for (const Worker& worker : workers_) {
    if (worker.told.live) {
      throw InvalidArgument("VectorEnv: nothing is under way: reset_async() or step_async() first");
    }
    gone += "; " + worker.told.last_loss;
  }
  throw PeerLost("VectorEnv: all workers are lost" + gone);
}

}  // namespace batchrpc
