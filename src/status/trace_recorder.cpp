#include "status/trace_recorder.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "batchrpc/node/node.hpp"
#include "batchrpc/profile/chrome_trace.hpp"
#include "batchrpc/profile/profiler.hpp"
#include "status/clock.hpp"

namespace batchrpc::status {

TraceRecorder::Trace TraceRecorder::record(const std::weak_ptr<NodeCore>& node,
                                           std::chrono::milliseconds time, const Choice& choice,
                                           const std::function<bool()>& is_gone) {
  struct Turn {  // ends the recording even if something throws
    ~Turn() {
      const std::lock_guard lock(self.mutex_);
      self.recording_ = false;
    }
    TraceRecorder& self;
  };
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return {.outcome = Outcome::stopped};
    if (std::exchange(recording_, true)) return {.outcome = Outcome::busy};
  }
  const Turn turn{*this};
  std::optional<Profiler> profiler;
  {
    std::shared_ptr<NodeCore> alive = node.lock();
    if (!alive) return {.outcome = Outcome::node_ended};
    profiler.emplace(*detail::NodeAccess::handle(std::move(alive)),
                     ProfilerOptions{.sample = choice.sample,
                                     .operators = choice.operators,
                                     .answered = true,
                                     .max_events = kMaxEvents});
  }
  const Outcome outcome = wait(node, time, is_gone);
  if (outcome != Outcome::recorded) return {.outcome = outcome};
  profiler->stop();
  return {.json = chrome_trace(profiler->recording())};
}

TraceRecorder::Outcome TraceRecorder::wait(const std::weak_ptr<NodeCore>& node,
                                           std::chrono::milliseconds time,
                                           const std::function<bool()>& is_gone) {
  constexpr std::chrono::milliseconds kLook(100);
  const Clock::time_point until = now() + time;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const Clock::time_point next = std::min(until, now() + kLook);
      if (stopping_.wait_until(lock, next, [this] { return stopped_; })) return Outcome::stopped;
    }
    if (node.expired()) return Outcome::node_ended;
    if (is_gone()) return Outcome::not_wanted;
    if (now() >= until) return Outcome::recorded;
  }
}

bool TraceRecorder::is_recording() const {
  const std::lock_guard lock(mutex_);
  return recording_;
}

void TraceRecorder::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  stopping_.notify_all();
}

}  // namespace batchrpc::status
