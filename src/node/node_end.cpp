#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "dispatch/call_dispatcher.hpp"
#include "dispatch/worker_pool.hpp"
#include "node/enduring_wait.hpp"
#include "node/node_core.hpp"
#include "node/retries.hpp"
#include "session/flush_scope.hpp"
#include "transport/nested_wait.hpp"

// How a node ends.
namespace batchrpc {

bool NodeCore::is_own_thread() const {
  return loop_->is_driving() || (workers_ && workers_->is_worker());
}

// Looks every millisecond, and only now: calls that come and go pay nothing for it.
void NodeCore::look_for(std::function<bool()> condition, Promise<void> done, TimePoint deadline) {
  const TimePoint now = loop_->now();
  if (now >= deadline || condition()) {
    done.set_value();
    return;
  }
  loop_->schedule(now + std::chrono::milliseconds(1),
                  [weak = weak_from_this(), condition = std::move(condition),
                   done = std::move(done), deadline]() mutable {
                    const auto self = weak.lock();
                    if (self) self->look_for(std::move(condition), std::move(done), deadline);
                  });
}

// Ready then, or at the deadline.
Future<void> NodeCore::when(std::function<bool()> condition, TimePoint deadline) {
  Promise<void> done;
  Future<void> is_done = done.get_future();
  look_for(std::move(condition), std::move(done), deadline);
  return is_done;
}

// Has the loop's own thread take a step of the end. False when it had no time for that: then the
// calling thread has taken it.
bool NodeCore::step_on_loop(const std::function<void()>& step, TimePoint deadline) {
  const auto taken = std::make_shared<std::atomic<bool>>(false);
  Promise<void> done;
  const Future<void> is_done = done.get_future();
  loop_->post([self = shared_from_this(), step, taken, done = std::move(done)]() mutable {
    if (taken->exchange(true)) return;
    step();
    done.set_value();
  });
  detail::wait_if_not_too_deep(is_done, std::max(deadline, loop_->now() + std::chrono::seconds(1)));
  if (!taken->exchange(true)) {
    step();
    return false;
  }
  detail::wait_if_not_too_deep(is_done, TimePoint::max());
  return true;
}

std::vector<std::string> NodeCore::shutdown(Duration timeout) {
  if (fork_mark_->is_forked_copy()) return {};
  std::map<std::uint64_t, PeerWait> waits;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return {};
    waits.swap(waits_);
  }
  stopping_ = true;
  for (auto& [number, wait] : waits) {
    loop_->cancel(wait.timer);
    wait.promise.set_error(
        ShutDown("node " + options_.name + " was shut down while " + wait.name + " was awaited"));
  }
  calls_->close_parked(refusal());
  const std::shared_ptr<NodeCore> self = shared_from_this();
  std::vector<std::string> left = retries_->close();
  const TimePoint deadline = after(loop_->now(), timeout);
  const auto elsewhere = std::make_shared<EnduringWait>(WaitContext::current());
  const auto enduring = std::make_shared<EnduringWait>(context_);
  const WaitScope wait_scope(enduring);

  // Nobody may be driving an embedder's loop any more: then neither comes to an end by itself.
  const auto wait_until = [this](std::function<bool()> condition, TimePoint limit) {
    if (limit > loop_->now())
      detail::wait_if_not_too_deep(when(std::move(condition), limit), limit);
  };
  constexpr Duration kConfirmWithin = std::chrono::seconds(1);
  const auto is_sent = [this] { return peers_->is_sent(); };
  wait_until([this] { return peers_->is_finished(); }, deadline);
  wait_until(is_sent, std::min(deadline, after(loop_->now(), kConfirmWithin)));
  for (std::string& straggler : peers_->pending())
    left.push_back(std::move(straggler));
  for (const std::string& straggler : left)
    log_.warning("shut down while waiting: " + straggler);
  std::vector<EndReport> reports;
  {
    const std::lock_guard lock(mutex_);
    reports = end_reports_;
  }
  for (const EndReport& report : reports) {
    for (std::string& held : report()) {
      log_.info("shut down while " + held);
      left.push_back(std::move(held));
    }
  }

  close_status_page();
  listening_->stop();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (tick_ != 0) loop_->cancel(tick_);
  }
  payload_memory_->close();
  bool by_loop = !options_.loop && !(own_loop_ && loop_->is_driving());
  const auto take = [&](const std::function<void()>& step) {
    if (!by_loop) {
      step();
    } else if (!step_on_loop(step, deadline)) {
      by_loop = own_loop_;  // which may only have been busy
    }
  };
  // Calls that have not begun are refused, and this node's objects and batchers end, while there
  // are connections by which others are notified.
  take([this] {
    const FlushScope scope(context_);
    calls_->close(refusal());
    peers_->refuse_waiting(refusal());
    call_handlers({.kind = PeerChange::Kind::ended, .peer = {}, .reason = {}});
  });
  const TimePoint leave_by = after(loop_->now(), std::min(timeout, kConfirmWithin));
  wait_until(is_sent, leave_by);
  functions_.clear();  // with the handles that they hold, which are given back
  take([this] {
    const FlushScope scope(context_);
    call_handlers({.kind = PeerChange::Kind::leaving, .peer = {}, .reason = {}});
  });
  wait_until(is_sent, leave_by);
  take([this] {
    const FlushScope scope(context_);
    peers_->close("node " + options_.name + " has shut down");
  });
  if (workers_) {
    const std::size_t busy =
        workers_->stop(std::max<Duration>(deadline - loop_->now(), std::chrono::milliseconds(100)));
    if (busy > 0) {
      log_.warning("shut down while " + std::to_string(busy) +
                   (busy == 1 ? " handler does" : " handlers do") +
                   " not return: the threads are left to themselves");
    }
  }
  if (!options_.loop) {  // whose last callback may wait for what the calling thread drives
    const WaitScope as_before(elsewhere);
    std::static_pointer_cast<SocketLoop>(loop_)->stop();
  }
  const auto thrown = enduring->thrown() ? enduring->thrown() : elsewhere->thrown();
  if (options_.io_context != nullptr && thrown) {
    asio::post(*options_.io_context, [thrown] { std::rethrow_exception(thrown); });
  }
  return left;
}

}  // namespace batchrpc
