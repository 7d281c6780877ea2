#pragma once

#include <algorithm>
#include <optional>

#include "batch/adaptive_wait.hpp"
#include "batch/batch_queue.hpp"
#include "batchrpc/batch/batch_options.hpp"

namespace batchrpc::detail {

/// When the calls of a lane become a batch, and how many of them.
class BatchTriggers {
 public:
  BatchTriggers() = default;
  explicit BatchTriggers(const BatchOptions& options);
  /// Of a batcher with a latency target: what it has chosen, within the options.
  void adopt(const AdaptiveWait::Choice& choice);

  /// Why a batch of the lane, which is not empty, starts now; nothing if it waits.
  [[nodiscard]] std::optional<BatchReason> due(const BatchLane& lane, bool group_complete,
                                               TimePoint now) const;
  /// When the lane is due if nothing else happens; TimePoint::max() for never.
  [[nodiscard]] TimePoint due_at(const BatchLane& lane) const;
  /// How many rows to take of so many that wait.
  [[nodiscard]] std::size_t cut(std::size_t waiting) const;
  /// How many batches so many rows make.
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
  std::size_t size_ = 1;  // a batch has at most so many rows
  BatchReason size_reason_ = BatchReason::size;
  std::size_t min_size_ = 0;  // 0: none
  Duration wait_{};           // zero: none
  bool grouped_ = false;
  std::vector<std::size_t> preferred_;
};

}  // namespace batchrpc::detail
