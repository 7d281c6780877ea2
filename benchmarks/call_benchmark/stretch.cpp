#include "call_benchmark/stretch.hpp"

#include <algorithm>
#include <utility>

#include "common/seconds_between.hpp"

namespace call_benchmark {

void Interrupt::raise() {
  const std::lock_guard lock(mutex_);
  raised_ = true;
  changed_.notify_all();
}

void Interrupt::check() const {
  if (raised()) throw Interrupted();
}

void Interrupt::sleep_until(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, time, [this] { return raised(); });
}

Stretch::Stretch(Interrupt& interrupt, double seconds)
    : timer_([this, &interrupt, seconds] {
        interrupt.sleep_until(begin_ + batchrpc_examples::duration_of(seconds));
        over_.store(true, std::memory_order_relaxed);
        end_ = Clock::now();
      }) {}

Stretch::~Stretch() {
  if (timer_.joinable()) timer_.join();
}

double Stretch::seconds() {
  if (timer_.joinable()) timer_.join();
  return batchrpc_examples::seconds_between(begin_, end_);
}

Sample take_sample(Client& client, double seconds, bool one_by_one, std::optional<pid_t> server,
                   Interrupt& interrupt) {
  constexpr double kShortest = 0.02;
  const double quarter = std::max(seconds / 4, kShortest);
  {
    const Stretch warm_up(interrupt, quarter);
    client.run(warm_up, false);
  }
  Sample sample;
  {
    Stretch counted(interrupt, seconds);
    const batchrpc_benchmarks::CpuWatch cpu(server);
    Outcome outcome = client.run(counted, one_by_one);
    const CpuTime used = cpu.passed();
    const auto each = 1e6 / static_cast<double>(outcome.calls + outcome.late);
    sample.cpu_us = {.client = used.client * each, .server = used.server * each};
    sample.calls_per_s = static_cast<double>(outcome.calls) / counted.seconds();
    sample.rtt_us = std::move(outcome.rtt_us);
  }
  if (!one_by_one) {
    const Stretch timed(interrupt, quarter);
    sample.rtt_us = client.run(timed, true).rtt_us;
  }
  interrupt.check();
  return sample;
}

}  // namespace call_benchmark
