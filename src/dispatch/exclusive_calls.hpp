#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "call/drop_hook.hpp"
#include "dispatch/admission_queue.hpp"
#include "dispatch/dispatched_call.hpp"

namespace batchrpc {

/// Calls that wait for the lock of their function, ExposeOptions::exclusive. Thread-safe.
class ExclusiveCalls : public std::enable_shared_from_this<ExclusiveCalls> {
 public:
  /// Short handlers run on `loop_tasks`, others on `workers`. A call that has a place in `queue`,
  /// which may be null, runs when it is its turn there.
  ExclusiveCalls(std::shared_ptr<Executor> loop_tasks, std::shared_ptr<Executor> workers,
                 std::shared_ptr<AdmissionQueue> queue);

  /// Runs the call when it has the lock.
  void add(DispatchedCall dispatched);
  /// Fails the calls that wait, even while the lock is taken. From now on none waits.
  void close(const std::exception_ptr& error);

 private:
  // A call that waits; those of a lock are sorted by number.
  using Key = std::pair<AsyncMutex*, std::uint64_t>;
  using Hook = DropHook<ExclusiveCalls, Key>;
  friend Hook;
  struct Waiting {
    DispatchedCall dispatched;
    std::unique_ptr<Hook> hook;
  };
  // The calls that wait for one lock. The lock is requested once at a time, so that a cancelled
  // call leaves no request behind.
  struct Line {
    std::shared_ptr<AsyncMutex> lock;
    std::map<std::uint64_t, Waiting> calls{};
  };

  void ask_for(AsyncMutex& mutex);
  void granted(AsyncMutex* mutex, AsyncMutex::Guard lock);
  void drop(const Key& key);

  const std::shared_ptr<Executor> loop_tasks_;
  const std::shared_ptr<Executor> workers_;
  const std::shared_ptr<AdmissionQueue> queue_;
  std::mutex mutex_;  // guards the members below
  std::map<AsyncMutex*, Line> lines_;
  std::uint64_t next_ = 0;
  std::exception_ptr closed_;  // the error for calls that come later; null: open
};

}  // namespace batchrpc
