#include "batch/batch_triggers.hpp"

#include <algorithm>

#include "base/time.hpp"

namespace batchrpc::detail {

std::size_t padded_size(const std::vector<std::size_t>& preferred, std::size_t rows) noexcept {
  const auto at = std::lower_bound(preferred.begin(), preferred.end(), rows);
  return at == preferred.end() ? rows : *at;
}

BatchTriggers::BatchTriggers(const BatchOptions& options)
    : max_size_(options.max_size),
      size_(options.max_size),
      min_size_(options.min_size > 1 ? options.min_size : 0),
      wait_(options.max_wait),
      grouped_(!options.all_of.empty()),
      preferred_(options.preferred_sizes) {
  if (preferred_.empty() || preferred_.back() >= size_) return;
  size_ = preferred_.back();
  size_reason_ = BatchReason::preferred;
}

void BatchTriggers::adopt(const AdaptiveWait::Choice& choice) {
  size_ = std::min(max_size_, choice.size);
  size_reason_ = BatchReason::size;
  wait_ = choice.wait;
  if (!preferred_.empty() && preferred_.back() < size_) {
    size_ = preferred_.back();
    size_reason_ = BatchReason::preferred;
  } else if (!preferred_.empty()) {  // the chosen size is one of them, too
    const auto above = std::upper_bound(preferred_.begin(), preferred_.end(), size_);
    size_ = above == preferred_.begin() ? *above : *std::prev(above);
  }
  min_size_ = choice.min_size > 1 ? std::min(choice.min_size, size_) : 0;
}

std::optional<BatchReason> BatchTriggers::due(const BatchLane& lane, bool group_complete,
                                              TimePoint now) const {
  if (lane.rows() >= size_) return size_reason_;
  if (lane.is_flushed()) return lane.flushed_by();
  if (grouped_ && group_complete) return BatchReason::all;
  if (min_size_ != 0 && lane.rows() >= min_size_) return BatchReason::min_size;
  const bool waits = wait_ > Duration::zero();
  if (waits && now - lane.first_arrival() >= wait_) return BatchReason::wait;
  if (!waits && min_size_ == 0 && !grouped_) return BatchReason::idle;
  return std::nullopt;
}

TimePoint BatchTriggers::due_at(const BatchLane& lane) const {
  return wait_ > Duration::zero() ? after(lane.first_arrival(), wait_) : TimePoint::max();
}

// A larger size that is mostly padding costs more than two runs of smaller ones.
std::size_t BatchTriggers::cut(std::size_t waiting) const {
  if (waiting >= size_ || preferred_.empty()) return std::min(waiting, size_);
  const auto above = std::lower_bound(preferred_.begin(), preferred_.end(), waiting);
  if (above == preferred_.end() || *above == waiting || above == preferred_.begin()) return waiting;
  return waiting > *above / 2 ? waiting : *std::prev(above);
}

}  // namespace batchrpc::detail
