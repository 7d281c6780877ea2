#include "node/quiescence.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

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
  const std::uint64_t calls = core_.counters()->calls_made();
  if (!is_idle()) {
    pause_ = std::min(2 * pause_, kLongestPause);
    return look_later();
  }
  // What is sent behind the mark are replies, whose callers wait for them, and messages of the
  // library.
  if (!mark_ || mark_->calls != calls) mark_ = {.sent = core_.peers().mark_sent(), .calls = calls};
  // A call may have been made while this looked at one session after the other.
  if (core_.counters()->calls_made() != calls || !core_.peers().is_received(mark_->sent)) {
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

}  // namespace batchrpc
