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

/// The user has asked to end.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

/// Said once, by any thread; ends what is being waited for.
class Interrupt {
 public:
  void raise();
  [[nodiscard]] bool raised() const { return raised_.load(); }
  /// Throws Interrupted if it was raised.
  void check() const;
  /// Sleeps until then, or until raised.
  void sleep_until(Clock::time_point time);

 private:
  std::atomic<bool> raised_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// The end of a stretch of time, noted by a thread of its own: whoever makes calls only looks at a
/// flag and asks no clock.
class Stretch {
 public:
  Stretch(Interrupt& interrupt, double seconds);
  ~Stretch();
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  [[nodiscard]] bool over() const { return over_.load(std::memory_order_relaxed); }

  /// From the beginning to the moment at which over() became true; waits for that.
  double seconds();

 private:
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point end_{};
  std::atomic<bool> over_{false};
  std::thread timer_;
};

/// What a client did in a stretch.
struct Outcome {
  std::uint64_t calls = 0;       ///< that had their result before it was over
  std::uint64_t late = 0;        ///< that had it afterwards
  std::vector<double> rtt_us{};  ///< of all calls, those that ended afterwards too; if asked for
};

/// Someone who makes calls, a given number at a time.
class Client {
 public:
  virtual ~Client() = default;
  /// Keeps its calls under way until the stretch is over, and returns when the last has ended.
  /// `timed`: notes how long each took. Throws when a call fails.
  virtual Outcome run(const Stretch& stretch, bool timed) = 0;
};

struct Sample {
  double calls_per_s = 0;
  CpuTime cpu_us{};  ///< a call
  std::vector<double> rtt_us{};
};

/// Warms up for a quarter of `seconds`; then counts calls for `seconds`, and times each call for
/// another quarter. `one_by_one`, when there is one call at a time and so the clock does not show:
/// counts and times the same calls. `server`: the other process, if there is one. Throws
/// Interrupted.
Sample take_sample(Client& client, double seconds, bool one_by_one, std::optional<pid_t> server,
                   Interrupt& interrupt);

}  // namespace call_benchmark
