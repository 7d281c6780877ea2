#pragma once

#include <cstddef>
#include <span>

#include "batchrpc/batch/batch_options.hpp"

namespace batchrpc::detail {

/// Chooses for how long a batcher gathers rows, and how many at most, so that a percentile of the
/// rows' latencies keeps a target and, within that, as many rows a second as possible are answered.
/// Not thread-safe; time is what it is told.
class AdaptiveWait {
 public:
  /// A batch starts when `size` rows are there, or its oldest has waited for `wait`; with a wait of
  /// zero as soon as the handler is idle.
  struct Choice {
    std::size_t size = 1;
    Duration wait{};
  };

  AdaptiveWait(LatencyTarget target, std::size_t max_size);

  /// Rows have come.
  void arrived(TimePoint now, std::size_t rows);
  /// A batch of so many rows has run; `latencies` of its calls, from their arrival to its end.
  void ended(TimePoint started, TimePoint now, std::size_t rows,
             std::span<const Duration> latencies);

  [[nodiscard]] const Choice& choice() const noexcept { return choice_; }

 private:
  LatencyTarget target_;
  std::size_t max_size_;
  Choice choice_;
};

}  // namespace batchrpc::detail
