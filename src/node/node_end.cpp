#include <algorithm>
#include <atomic>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "dispatch/call_dispatcher.hpp"
#include "node/enduring_wait.hpp"
#include "node/group.hpp"
#include "node/group_end.hpp"
#include "node/node_core.hpp"
#include "node/retries.hpp"
#include "session/flush_scope.hpp"
#include "session/payload_memory.hpp"
#include "transport/nested_wait.hpp"

namespace batchrpc {
namespace {

constexpr Duration kConfirmWithin = std::chrono::seconds(1);
constexpr Duration kBusyWorkersFinishWithin = std::chrono::milliseconds(100);

// Checks the condition every millisecond. Polls, so that calls pay nothing for it.
void look_for(std::weak_ptr<NodeCore> node, std::function<bool()> condition, Promise<void> done,
              TimePoint deadline) {
  const auto core = node.lock();
  if (!core) return;
  const TimePoint now = core->loop()->now();
  if (now >= deadline || condition()) {
    done.set_value();
    return;
  }
  core->loop()->schedule(
      now + std::chrono::milliseconds(1), [node = std::move(node), condition = std::move(condition),
                                           done = std::move(done), deadline]() mutable {
        look_for(std::move(node), std::move(condition), std::move(done), deadline);
      });
}

}  // namespace

// The end of a node, in the order of its functions. The thread that calls NodeCore::shutdown() runs
// it; the loop's thread takes the steps that touch sessions.
class NodeCore::Shutdown {
 public:
  Shutdown(std::shared_ptr<NodeCore> core, Duration timeout)
      : core_(std::move(core)),
        timeout_(timeout),
        elsewhere_(std::make_shared<EnduringWait>(WaitContext::current())),
        enduring_(std::make_shared<EnduringWait>(core_->threads_.context())) {}

  // Returns what was not finished.
  std::vector<std::string> run() {
    refuse_new_work();
    const WaitScope wait_scope(enduring_);
    wait_for_calls();
    report_to_layers_above();
    stop_own_tasks();
    end_calls_and_peers();
    stop_threads();
    return std::move(left_);
  }

 private:
  void refuse_new_work() {
    core_->waits_.close();
    core_->group_->end().finish("the node was shut down");
    core_->calls_->close_parked(core_->refusal());
    left_ = core_->retries_->close();
    deadline_ = after(now(), timeout_);
  }

  void wait_for_calls() {
    wait_until([node = core_.get()] { return node->peers_->is_finished(); }, deadline_);
    wait_until_sent(std::min(deadline_, after(now(), kConfirmWithin)));
    for (std::string& straggler : core_->peers_->pending())
      left_.push_back(std::move(straggler));
    for (const std::string& straggler : left_)
      core_->log_.warning("shut down while waiting: " + straggler);
  }

  void report_to_layers_above() {
    for (std::string& held : core_->extensions_.end_reports()) {
      core_->log_.info("shut down while " + held);
      left_.push_back(std::move(held));
    }
  }

  void stop_own_tasks() {
    core_->extensions_.close_status_page();
    core_->addresses_.listening().stop();
    core_->tick_.stop();
    core_->denied_look_.stop();
    core_->payload_memory()->close();
  }

  // Calls that have not begun are refused, and this node's objects and batchers end, while there
  // are connections by which others are notified.
  void end_calls_and_peers() {
    const NodeThreads& threads = core_->threads_;
    by_loop_ = threads.made_loop() && !(threads.has_own_loop() && threads.loop()->is_driving());
    take([this] {
      core_->calls_->close(core_->refusal());
      core_->peers_->refuse_waiting(core_->refusal());
      core_->handlers_.call({.kind = PeerChange::Kind::ended, .peer = {}, .reason = {}});
    });
    const TimePoint leave_by = after(now(), std::min(timeout_, kConfirmWithin));
    wait_until_sent(leave_by);
    core_->functions_.clear();  // The handles that they hold are given back.
    take([this] {
      core_->handlers_.call({.kind = PeerChange::Kind::leaving, .peer = {}, .reason = {}});
    });
    wait_until_sent(leave_by);
    take([this] { core_->peers_->close("node " + core_->name() + " has shut down"); });
  }

  void stop_threads() {
    const std::size_t busy = core_->threads_.stop_workers(
        std::max<Duration>(deadline_ - now(), kBusyWorkersFinishWithin));
    if (busy > 0) {
      core_->log_.warning("shut down while " + std::to_string(busy) +
                          (busy == 1 ? " handler has" : " handlers have") +
                          " not returned; their threads are abandoned");
    }
    {  // The loop's last callback may wait for what the calling thread drives.
      const WaitScope as_before(elsewhere_);
      core_->threads_.stop_loop();
    }
    core_->threads_.rethrow_in_context(enduring_->thrown() ? enduring_->thrown()
                                                           : elsewhere_->thrown());
  }

  // Returns at the limit at the latest, also when no thread drives an embedder's loop any more.
  void wait_until(std::function<bool()> condition, TimePoint limit) {
    if (limit <= now()) return;
    Promise<void> done;
    const Future<void> is_done = done.get_future();
    look_for(core_, std::move(condition), std::move(done), limit);
    detail::wait_if_not_too_deep(is_done, limit);
  }

  void wait_until_sent(TimePoint limit) {
    wait_until([node = core_.get()] { return node->peers_->is_sent(); }, limit);
  }

  // Takes a step on the loop's thread, or on this one if the loop is not ours to stop or was too
  // busy.
  void take(const std::function<void()>& step) {
    const auto scoped = [this, step] {
      const FlushScope scope(core_->threads_.context());
      step();
    };
    if (!by_loop_) {
      scoped();
    } else if (!take_on_loop(scoped)) {
      by_loop_ = core_->threads_.has_own_loop();  // which may only have been busy
    }
  }

  // False: the loop had no time for the step, and this thread has taken it.
  bool take_on_loop(const std::function<void()>& step) {
    const auto taken = std::make_shared<std::atomic<bool>>(false);
    Promise<void> done;
    const Future<void> is_done = done.get_future();
    core_->loop()->post([core = core_, step, taken, done = std::move(done)]() mutable {
      if (taken->exchange(true)) return;
      step();
      done.set_value();
    });
    detail::wait_if_not_too_deep(is_done, std::max(deadline_, now() + std::chrono::seconds(1)));
    if (!taken->exchange(true)) {
      step();
      return false;
    }
    detail::wait_if_not_too_deep(is_done, TimePoint::max());
    return true;
  }

  [[nodiscard]] TimePoint now() const { return core_->loop()->now(); }

  const std::shared_ptr<NodeCore> core_;
  const Duration timeout_;
  TimePoint deadline_{};
  const std::shared_ptr<EnduringWait> elsewhere_;  // the calling thread's own way to wait
  const std::shared_ptr<EnduringWait> enduring_;
  bool by_loop_ = false;  // whether the loop's thread takes the steps
  std::vector<std::string> left_;
};

std::vector<std::string> NodeCore::shutdown(Duration timeout) {
  if (is_forked_copy() || stopping_.exchange(true)) return {};
  return Shutdown(shared_from_this(), timeout).run();
}

std::vector<std::string> NodeCore::shutdown_together(Duration timeout) {
  if (refusal()) return {};
  expect_no_more_functions();
  const auto enduring = std::make_shared<EnduringWait>(threads_.context());
  GroupEnd& end = group_->end();
  Future<std::string> over = end.done();
  {
    const WaitScope wait_scope(enduring);
    detail::wait_if_not_too_deep(over, after(loop()->now(), timeout));
  }
  std::string why = over.ready() ? std::move(over).get() : end.missing();
  std::vector<std::string> left;
  if (!why.empty()) {
    log_.warning("shuts down without its group: " + why);
    left.push_back(std::move(why));
  }
  for (std::string& each : shutdown(options_.shutdown_timeout))
    left.push_back(std::move(each));
  threads_.rethrow_in_context(enduring->thrown());
  return left;
}

}  // namespace batchrpc
