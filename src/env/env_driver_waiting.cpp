#include <algorithm>
#include <string>

#include "batchrpc/base/error.hpp"
#include "env/env_driver.hpp"

namespace batchrpc {

// Waits, without the mutex, until the condition is true or the deadline has passed. Returns with
// the mutex.
std::unique_lock<std::mutex> VectorEnv::State::lock_when(const std::function<bool()>& condition,
                                                         TimePoint deadline) {
  std::unique_lock lock(mutex_);
  while (!condition() && loop_->now() < deadline) {
    const Future<void> true_now = waiter_.await(condition);
    lock.unlock();
    if (deadline == TimePoint::max()) {
      true_now.wait();
    } else {
      true_now.wait_until(deadline);
    }
    lock.lock();
    waiter_.end();
  }
  return lock;
}

bool VectorEnv::State::any_live() const noexcept {
  return std::ranges::any_of(workers_, [](const Worker& worker) { return worker.told.live; });
}

void VectorEnv::State::throw_nothing() const {
  std::string gone;
  for (const Worker& worker : workers_) {
    if (worker.told.live) {
      throw InvalidArgument(
          "VectorEnv: no step is in flight; call reset_async() or step_async() first");
    }
    gone += "; " + worker.told.last_loss;
  }
  throw PeerLost("VectorEnv: all workers are lost" + gone);
}

}  // namespace batchrpc
