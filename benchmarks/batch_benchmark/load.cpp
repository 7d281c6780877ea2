#include "batch_benchmark/load.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include "common/seconds_between.hpp"

namespace batch_benchmark {

namespace {

using batchrpc_examples::duration_of;
using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

/// Counts the answers within the counted seconds. These begin with the first row sent after the
/// warm-up, so that they count even if the machine stalls. Thread-safe.
class Counter {
 public:
  explicit Counter(const Span& span)
      : seconds_(span.seconds), from_(Clock::now() + duration_of(span.warm_up)) {}

  void begin(Time sent) {
    const std::lock_guard lock(mutex_);
    ++under_way_;
    if (is_open() || sent < from_) return;
    from_ = sent;
    to_ = sent + duration_of(seconds_);
  }
  void end(Time sent, Time done, bool answered) {
    std::unique_lock lock(mutex_);
    // Selects rows by their send time; otherwise the last rows of an open loop would be missing.
    if (sent >= from_ && sent <= to_) {
      if (answered) {
        load_.us.push_back(std::chrono::duration<double, std::micro>(done - sent).count());
      } else {
        ++load_.failed;
      }
    }
    if (is_open() && answered && done >= from_ && done <= to_) ++answered_;
    --under_way_;
    notify(lock);
  }
  bool is_over(Time time) const {
    const std::lock_guard lock(mutex_);
    return time >= to_;
  }
  /// Call it when no row is in flight and none begins.
  Load finish() {
    std::unique_lock lock(mutex_);
    finishing_ = true;
    auto over = over_.get_future();
    notify(lock);
    if (lock.owns_lock()) lock.unlock();
    over.get();
    if (load_.us.empty()) throw std::runtime_error("no row was answered during a whole sample");
    load_.rows_per_s = static_cast<double>(answered_) / seconds_;
    return std::move(load_);
  }

 private:
  bool is_open() const { return to_ != Time::max(); }
  void notify(std::unique_lock<std::mutex>& lock) {
    if (!finishing_ || under_way_ > 0) return;
    lock.unlock();
    over_.set_value();
  }

  const double seconds_;
  mutable std::mutex mutex_;  // guards the members below
  Time from_;
  Time to_ = Time::max();
  Load load_;
  std::uint64_t answered_ = 0;
  std::uint64_t under_way_ = 0;
  bool finishing_ = false;
  batchrpc::Promise<void> over_;
};

void ask_again(const std::shared_ptr<Counter>& counter, const Ask& ask, Time sent) {
  counter->begin(sent);
  ask().then([counter, &ask, sent](const batchrpc::Result<std::int64_t>& result) {
    const Time done = Clock::now();
    if (result && !counter->is_over(done)) ask_again(counter, ask, done);
    counter->end(sent, done, static_cast<bool>(result));
  });
}

}  // namespace

bool Load::keeps(double limit_us, double percent) const {
  const auto in_time =
      std::count_if(us.begin(), us.end(), [&](double each) { return each <= limit_us; });
  return static_cast<double>(in_time) * 100 >=
         percent * static_cast<double>(us.size() + static_cast<std::size_t>(failed));
}

Load open_loop(const Ask& ask, double rows_per_s, const Span& span, std::uint64_t seed) {
  sleep_exactly();
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(rows_per_s);
  const auto counter = std::make_shared<Counter>(span);
  for (Time next = Clock::now(); !counter->is_over(next); next += duration_of(gap(random))) {
    std::this_thread::sleep_until(next);
    counter->begin(next);
    ask().then([counter, next](const batchrpc::Result<std::int64_t>& result) {
      counter->end(next, Clock::now(), static_cast<bool>(result));
    });
  }
  return counter->finish();
}

Load closed_loop(const Ask& ask, int callers, const Span& span) {
  const auto counter = std::make_shared<Counter>(span);
  for (int i = 0; i < callers; ++i)
    ask_again(counter, ask, Clock::now());
  return counter->finish();
}

void sleep_exactly() {
  thread_local const int kDone = ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  (void)kDone;
}

}  // namespace batch_benchmark
