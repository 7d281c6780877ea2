#include "node/quiescence.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "call/function_table.hpp"
#include "node/node_core.hpp"
#include "node/retries.hpp"

namespace batchrpc {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr Duration kLongestPause = std::chrono::milliseconds(50);

}  // namespace

void Quiescence::when_quiet(std::function<void(std::uint64_t)> handler) {
  handler_ = std::move(handler);
  mark_.reset();
  pause_ = kFirstPause;
  core_.loop()->cancel(std::exchange(timer_, 0));
  look();
}

void Quiescence::look() {
  if (!is_idle()) {
    mark_.reset();
    pause_ = std::min(2 * pause_, kLongestPause);
    return look_later();
  }
  const std::uint64_t calls = calls_made();
  if (!mark_ || mark_->calls != calls) mark_ = {.sent = core_.peers().mark_sent(), .calls = calls};
  if (!PeerTable::is_received(mark_->sent)) {
    pause_ = kFirstPause;
    return look_later();
  }
  mark_.reset();
  std::exchange(handler_, nullptr)(calls);
}

void Quiescence::look_later() {
  timer_ = core_.loop()->schedule(core_.loop()->now() + pause_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

bool Quiescence::is_idle() const {
  return core_.retries().is_idle() && core_.peers().is_finished();
}

// Leaves out the library's notifications, by which members ask each other whether they are quiet.
std::uint64_t Quiescence::calls_made() const {
  NodeMetrics metrics;
  core_.counters()->report(metrics);
  std::uint64_t calls = 0;
  for (const FunctionMetrics& function : metrics.functions) {
    calls += function.made.calls;
    if (function.name != kLibraryName) calls += function.made.notifications;
  }
  return calls;
}

}  // namespace batchrpc
