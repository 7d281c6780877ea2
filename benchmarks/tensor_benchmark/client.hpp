#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "common/seconds_between.hpp"

namespace tensor_benchmark {

using Clock = std::chrono::steady_clock;

/// Called now and then while something is waited for; throws what is to end that.
using Check = std::function<void()>;

/// What a client did.
struct Outcome {
  double seconds = 0;        ///< from its first call's begin to its last one's end
  std::vector<double> us{};  ///< how long each call took
};

/// Who makes calls, a window of them at a time. One thread uses it.
class Client {
 public:
  virtual ~Client() = default;
  /// Keeps its window full for so long, makes no more calls then, and returns when the last has
  /// ended; at least one window of calls. Throws when a call fails; the client is then of no more
  /// use.
  virtual Outcome run(double seconds) = 0;
};

/// The time of a run.
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
