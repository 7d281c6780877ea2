#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "batchrpc/base/function.hpp"

namespace batchrpc::detail {

/// What was posted to a loop, in order, taken out one by one, so that a task that waits does not
/// hold up those behind it. Thread-safe.
class PostQueue {
 public:
  /// Returns whether the taker had gone to sleep and must be woken. `foreign` tasks are counted.
  bool push(Task task, bool foreign) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    if (count_ == ring_.size()) grow();
    ring_[(head_ + count_) & (ring_.size() - 1)] = {std::move(task), foreign};
    ++count_;
    if (foreign) ++foreign_;
    return std::exchange(asleep_, false);
  }

  /// The first task; an empty one when there is none: the taker then counts as asleep until it
  /// comes back.
  Task pop_or_sleep() {
    const std::lock_guard lock(mutex_);
    asleep_ = count_ == 0;
    if (asleep_) return nullptr;
    auto& [task, foreign] = ring_[head_];
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
    if (foreign) --foreign_;
    return std::move(task);
  }

  [[nodiscard]] bool has_foreign() noexcept {
    const std::lock_guard lock(mutex_);
    return foreign_ > 0;
  }

  /// Destroys all tasks, and those that come later.
  void stop() {
    std::vector<Entry> ring;  // destroyed after the lock
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ring.swap(ring_);
    count_ = foreign_ = 0;
  }

 private:
  struct Entry {
    Task task;
    bool foreign = false;
  };

  void grow() {
    std::vector<Entry> larger(ring_.empty() ? 16 : 2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) {
      larger[i] = std::move(ring_[(head_ + i) & (ring_.size() - 1)]);
    }
    ring_.swap(larger);
    head_ = 0;
  }

  std::mutex mutex_;
  std::vector<Entry> ring_;  // a power of two
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::size_t foreign_ = 0;
  bool asleep_ = false;
  bool stopped_ = false;
};

}  // namespace batchrpc::detail
