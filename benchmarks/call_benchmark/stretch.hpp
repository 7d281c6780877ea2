#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/cpu_time.hpp"

namespace call_benchmark {

using batchrpc_benchmarks::CpuTime;
using Clock = std::chrono::steady_clock;

/// The user has asked the program to end.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

/// Raised once, by any thread; ends all waits.
class Interrupt {
 public:
  void raise();
  [[nodiscard]] bool raised() const { return raised_.load(); }
  /// Throws Interrupted if it was raised.
  void check() const;
  /// Sleeps until `time`, or until raised.
  void sleep_until(Clock::time_point time);

 private:
  std::atomic<bool> raised_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// A stretch of time whose end its own thread notes. So a caller only looks at a flag and does not
/// read a clock.
class Stretch {
 public:
  Stretch(Interrupt& interrupt, double seconds);
  ~Stretch();
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  [[nodiscard]] bool over() const { return over_.load(std::memory_order_relaxed); }

  /// Waits until over() is true, and returns the seconds from the beginning until then.
  double seconds();

 private:
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point end_{};
  std::atomic<bool> over_{false};
  std::thread timer_;
};

/// A client's results in a stretch.
struct Outcome {
  std::uint64_t calls = 0;       ///< that got their result before it was over
  std::uint64_t late = 0;        ///< that got it afterwards
  std::vector<double> rtt_us{};  ///< of all calls, including late ones; only if requested
};

/// Makes calls, a given number at a time.
class Client {
 public:
  virtual ~Client() = default;
  /// Keeps its calls in flight until the stretch is over, and returns when the last one has ended.
  /// `timed`: records how long each took. Throws if a call fails.
  virtual Outcome run(const Stretch& stretch, bool timed) = 0;
};

struct Sample {
  double calls_per_s = 0;
  CpuTime cpu_us{};  ///< per call
  std::vector<double> rtt_us{};
};

/// Warms up for a quarter of `seconds`, counts calls for `seconds`, then times each call for
/// another quarter. `one_by_one`: counts and times the same calls, since with one call at a time
/// reading the clock has no visible cost. `server` is the other process, if there is one. Throws
/// Interrupted.
Sample take_sample(Client& client, double seconds, bool one_by_one, std::optional<pid_t> server,
                   Interrupt& interrupt);

}  // namespace call_benchmark
