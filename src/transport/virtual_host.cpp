#include "batchrpc/transport/virtual_host.hpp"

#include <algorithm>
#include <cmath>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

// A task of the host, as the loop stores it.
class VirtualHost::Run {
 public:
  Run(std::weak_ptr<VirtualHost> host, Task task)
      : host_(std::move(host)), task_(std::move(task)) {}
  void operator()() {
    if (const auto host = host_.lock()) host->run(std::move(task_));
  }

 private:
  std::weak_ptr<VirtualHost> host_;
  Task task_;
};

std::shared_ptr<VirtualHost> VirtualHost::make(std::shared_ptr<VirtualLoop> loop,
                                               const ClockOptions& clock) {
  if (!(std::abs(clock.drift) <= 0.5)) {
    throw InvalidArgument("ClockOptions::drift must be from -0.5 to 0.5");
  }
  if (loop->now() + clock.offset < TimePoint()) {
    throw InvalidArgument("ClockOptions::offset: a virtual clock can be at most an hour behind");
  }
  return std::shared_ptr<VirtualHost>(new VirtualHost(std::move(loop), clock));
}

VirtualHost::VirtualHost(std::shared_ptr<VirtualLoop> loop, const ClockOptions& clock)
    : loop_(std::move(loop)), start_(loop_->now()), clock_(clock) {}

VirtualHost::~VirtualHost() = default;

TimePoint VirtualHost::at_host(TimePoint at_loop) const noexcept {
  TimePoint time = at_loop + clock_.offset;
  if (clock_.drift != 0) {
    const auto passed = static_cast<double>((at_loop - start_).count());
    time += Duration(static_cast<Duration::rep>(std::floor(passed * clock_.drift)));
  }
  return time;
}

TimePoint VirtualHost::at_loop(TimePoint at_host) const noexcept {
  constexpr Duration kFar = std::chrono::hours(24 * 365 * 100);
  if (at_host <= now()) return loop_->now();
  if (at_host - start_ > kFar) return TimePoint::max();  // an endless wait
  const TimePoint ahead = at_host - clock_.offset;
  if (clock_.drift == 0) return ahead;
  const auto passed = static_cast<double>((ahead - start_).count());
  TimePoint time = start_ +
                   Duration(static_cast<Duration::rep>(std::floor(passed / (1 + clock_.drift)))) -
                   Duration(2);
  while (this->at_host(time) < at_host)  // a few steps of rounding
    ++time;
  return time;
}

void VirtualHost::post(Task task) { schedule_at_loop(loop_->now(), std::move(task)); }

TimerId VirtualHost::schedule(TimePoint when, Task task) {
  return schedule_at_loop(at_loop(when), std::move(task));
}

TimerId VirtualHost::schedule_at_loop(TimePoint when, Task task) {
  return loop_->schedule(when, Run(weak_from_this(), std::move(task)));
}

bool VirtualHost::cancel(TimerId timer) {
  if (loop_->cancel(timer)) return true;
  const auto found = std::find_if(held_back_.begin(), held_back_.end(),
                                  [timer](const auto& held) { return held.first == timer; });
  if (found == held_back_.end()) return false;
  const Task cancelled = std::move(found->second);  // destroyed when it is no longer listed
  held_back_.erase(found);
  return true;
}

void VirtualHost::run(Task task) {
  if (!paused_ && held_back_.empty()) {
    task();
  } else {
    held_back_.emplace_back(loop_->current_, std::move(task));
  }
}

void VirtualHost::drop_tasks() noexcept {
  while (!held_back_.empty()) {
    const Task dropped = std::move(held_back_.front().second);
    held_back_.pop_front();
  }
}

void VirtualHost::resume() {
  if (!std::exchange(paused_, false) || held_back_.empty()) return;
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->run_held_back();
  });
}

// Runs one task at a time, so that each is a task of the loop.
void VirtualHost::run_held_back() {
  if (paused_ || held_back_.empty()) return;
  Task task = std::move(held_back_.front().second);
  held_back_.pop_front();
  if (!held_back_.empty()) {
    loop_->post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->run_held_back();
    });
  }
  task();
}

void VirtualHost::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  loop_->wait(waiter, deadline ? std::optional(at_loop(*deadline)) : std::nullopt);
}

}  // namespace batchrpc
