#pragma once

#include <cstddef>
#include <span>

#include "batch/caller_model.hpp"
#include "batch/cost_curve.hpp"
#include "batchrpc/batch/batch_options.hpp"

namespace batchrpc::detail {

/// Chooses how long a batcher gathers rows, and how many. A percentile of the rows' latencies must
/// keep a target; within that, the number of rows answered per second is maximized. See
/// docs/decisions/0013-adaptive-wait.md. Not thread-safe; the caller passes the time. Chooses again
/// after every batch, and allocates nothing.
class AdaptiveWait {
 public:
  /// A batch starts when `min_size` rows are there, or its oldest row has waited for `wait`, and
  /// has at most `size` rows. With a wait of zero it starts as soon as the handler is idle.
  struct Choice {
    std::size_t size = 1;
    std::size_t min_size = 1;
    Duration wait{};
  };

  /// It never waits if the parallelism is above 1.
  AdaptiveWait(LatencyTarget target, std::size_t max_size, std::size_t parallelism);

  /// Call this when rows have arrived.
  void arrived(TimePoint now, std::size_t rows) { callers_.arrived(now, rows); }
  /// Call this when a batch of `rows` rows has run; `arrivals` are the arrival times of its calls.
  /// `waiting` is the number of rows that wait now.
  void ended(TimePoint started, TimePoint now, std::size_t rows, std::size_t waiting,
             std::span<const TimePoint> arrivals);

  [[nodiscard]] const Choice& choice() const noexcept { return choice_; }

 private:
  void learn_from(std::span<const TimePoint> arrivals, TimePoint now);
  [[nodiscard]] std::size_t best_size() const;
  [[nodiscard]] double longest_wait(double rows) const;
  void choose();
  void judge(std::size_t rows, Duration span);
  void stop_waiting();
  [[nodiscard]] bool is_time_to_probe();

  LatencyTarget target_;
  double max_size_;
  double parallelism_;
  Choice choice_;

  CostCurve curve_;
  CallerModel callers_;
  double part_ = 0.95;  // the part of the target that the model may plan with
  TimePoint ended_{};   // end of the last batch

  static constexpr int kFirstPause = 16;
  static constexpr int kShortestPause = 32;  // doubles each time a wait did not pay off

  // A trial of the wait: whether it has brought the gain that the model promised.
  struct Trial {
    double rate_before = 0;  // rows per nanosecond
    double promised = 1;     // factor
    int batches = 0;
    double rows = 0;
    double time = 0;
  };
  Trial trial_;
  bool is_waiting_ = false;
  int probe_in_ = 0;         // batches
  int pause_ = kFirstPause;  // batches until a wait may be tried
  double rate_of_pause_ = 0;
  int next_pause_ = kShortestPause;
};

}  // namespace batchrpc::detail
