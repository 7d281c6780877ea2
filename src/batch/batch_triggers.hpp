#pragma once

#include <algorithm>
#include <optional>

#include "batch/adaptive_wait.hpp"
#include "batch/batch_queue.hpp"
#include "batchrpc/batch/batch_options.hpp"

namespace batchrpc::detail {

/// Decides when a lane's calls become a batch, and how many of them.
class BatchTriggers {
 public:
  BatchTriggers() = default;
  explicit BatchTriggers(const BatchOptions& options);
  /// Applies the choice for a batcher with a latency target, within the options.
  void adopt(const AdaptiveWait::Choice& choice);

  /// Why a batch of the lane, which is not empty, starts now; empty if it waits.
  [[nodiscard]] std::optional<BatchReason> due(const BatchLane& lane, bool group_complete,
                                               TimePoint now) const;
  /// When the lane is due if nothing else happens; TimePoint::max() means never.
  [[nodiscard]] TimePoint due_at(const BatchLane& lane) const;
  /// The number of rows to take if `waiting` rows wait.
  [[nodiscard]] std::size_t cut(std::size_t waiting) const;
  /// The number of batches for `waiting` rows.
  [[nodiscard]] std::size_t batches(std::size_t waiting) const {
    return waiting / size_ + (waiting % size_ != 0 ? 1 : 0);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t min_size() const noexcept {
    return std::max<std::size_t>(min_size_, 1);
  }
  [[nodiscard]] Duration wait() const noexcept { return wait_; }

 private:
  std::size_t max_size_ = 1;
  std::size_t size_ = 1;  // a batch has at most this many rows
  BatchReason size_reason_ = BatchReason::size;
  std::size_t min_size_ = 0;  // 0: none
  Duration wait_{};           // zero: none
  bool grouped_ = false;
  std::vector<std::size_t> preferred_;
};

}  // namespace batchrpc::detail
