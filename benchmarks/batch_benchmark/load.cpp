#include "batch_benchmark/load.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

namespace batch_benchmark {

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Counts what is answered within the seconds that count. Thread-safe.
class Counter {
 public:
  explicit Counter(const Span& span)
      : from(Clock::now() + duration_of(span.warm_up)),
        to(from + duration_of(span.seconds)),
        seconds_(span.seconds) {}

  void begin() {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  void end(Time sent, Time done, bool answered) {
    std::unique_lock lock(mutex_);
    if (!answered && sent >= from && sent <= to) ++load_.failed;
    // Of those that came in time; an open loop's last ones would else be missing.
    if (answered && sent >= from && sent <= to) {
      load_.us.push_back(std::chrono::duration<double, std::micro>(done - sent).count());
    }
    if (answered && done >= from && done <= to) ++answered_;
    --under_way_;
    tell(lock);
  }
  /// When nothing is under way any more, and nothing begins.
  Load finish() {
    std::unique_lock lock(mutex_);
    finishing_ = true;
    auto over = over_.get_future();
    tell(lock);
    if (lock.owns_lock()) lock.unlock();
    over.get();
    if (load_.us.empty()) throw std::runtime_error("no row was answered in a whole sample");
    load_.rows_per_s = static_cast<double>(answered_) / seconds_;
    return std::move(load_);
  }

  const Time from;
  const Time to;

 private:
  void tell(std::unique_lock<std::mutex>& lock) {
    if (!finishing_ || under_way_ > 0) return;
    lock.unlock();
    over_.set_value();
  }

  const double seconds_;
  std::mutex mutex_;  // guards what follows
  Load load_;
  std::uint64_t answered_ = 0;
  std::uint64_t under_way_ = 0;
  bool finishing_ = false;
  batchrpc::Promise<void> over_;
};

void ask_again(const std::shared_ptr<Counter>& counter, const Ask& ask) {
  const Time sent = Clock::now();
  ask().then([counter, &ask, sent](const batchrpc::Result<std::int64_t>& result) {
    const Time done = Clock::now();
    if (done < counter->to && result) {
      counter->begin();
      ask_again(counter, ask);
    }
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
  for (Time next = Clock::now(); next < counter->to; next += duration_of(gap(random))) {
    std::this_thread::sleep_until(next);
    counter->begin();
    ask().then([counter, next](const batchrpc::Result<std::int64_t>& result) {
      counter->end(next, Clock::now(), static_cast<bool>(result));
    });
  }
  return counter->finish();
}

Load closed_loop(const Ask& ask, int callers, const Span& span) {
  const auto counter = std::make_shared<Counter>(span);
  for (int i = 0; i < callers; ++i) {
    counter->begin();
    ask_again(counter, ask);
  }
  std::this_thread::sleep_until(counter->to);
  return counter->finish();
}

void sleep_exactly() {
  thread_local const int kDone = ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  (void)kDone;
}

}  // namespace batch_benchmark
