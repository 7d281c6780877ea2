#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "common/seconds_between.hpp"

namespace tensor_benchmark {

using Clock = std::chrono::steady_clock;

/// Called regularly during waits; throws to end a wait.
using Check = std::function<void()>;

/// A client's results.
struct Outcome {
  double seconds = 0;        ///< from the start of its first call to the end of its last one
  std::vector<double> us{};  ///< duration of each call
};

/// Makes calls, a window of them at a time. Only one thread may use it.
class Client {
 public:
  virtual ~Client() = default;
  /// Keeps its window full for `seconds`, then makes no more calls and returns when the last one
  /// has ended. Makes at least one window of calls. Throws if a call fails; the client cannot be
  /// used afterwards.
  virtual Outcome run(double seconds) = 0;
};

/// The duration of a run.
class RunTime {
 public:
  explicit RunTime(double seconds) : end_(begin_ + batchrpc_examples::duration_of(seconds)) {}

  [[nodiscard]] Clock::time_point begin() const { return begin_; }
  [[nodiscard]] bool is_over(Clock::time_point now) const { return now >= end_; }
  [[nodiscard]] double passed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

 private:
  Clock::time_point begin_ = Clock::now();
  Clock::time_point end_;
};

inline double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace tensor_benchmark
