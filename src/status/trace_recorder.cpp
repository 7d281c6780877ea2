#include "status/trace_recorder.hpp"

#include <optional>
#include <utility>

#include "batchrpc/node/node.hpp"
#include "batchrpc/profile/chrome_trace.hpp"
#include "batchrpc/profile/profiler.hpp"
#include "status/clock.hpp"

namespace batchrpc::status {

TraceRecorder::Trace TraceRecorder::record(const std::shared_ptr<NodeCore>& node,
                                           std::chrono::milliseconds time) {
  struct Turn {  // also when something is thrown
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
  Node::visit(node, [&](const Node& handle) {
    profiler.emplace(handle, ProfilerOptions{.answered = true, .max_events = kMaxEvents});
  });
  {
    std::unique_lock lock(mutex_);
    const bool stopped = stopping_.wait_until(lock, now() + time, [this] { return stopped_; });
    if (stopped) return {.outcome = Outcome::stopped};
  }
  profiler->stop();
  return {.json = chrome_trace(profiler->recording())};
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
