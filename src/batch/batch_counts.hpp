#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/batch/batch_statistics.hpp"

namespace batchrpc::detail {

/// Collects BatchStatistics. Not thread-safe.
class BatchCounts {
 public:
  /// Adds `rows` to a counter.
  void add(std::uint64_t BatchStatistics::*what, std::size_t rows) noexcept {
    totals_.*what += rows;
  }
  void started(const TakenBatch& batch);
  void ended(const BatchOutcome& outcome, TimePoint started, TimePoint ended,
             std::span<const TimePoint> arrivals);

  /// The totals, without current values such as the rows that wait.
  [[nodiscard]] const BatchStatistics& totals() const noexcept { return totals_; }
  /// Rows per second, over the last ten seconds.
  [[nodiscard]] double rows_per_second(TimePoint now) const;

 private:
  static constexpr std::size_t kSeconds = 10;
  struct Slot {
    std::int64_t second = -1;
    std::uint64_t rows = 0;
  };

  BatchStatistics totals_;
  std::array<Slot, kSeconds + 1> slots_;  // the current second and the ones before
  TimePoint first_{};
  bool any_ = false;
};

}  // namespace batchrpc::detail
