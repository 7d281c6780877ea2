#include "transport/embedded_core.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/nested_wait.hpp"

namespace batchrpc::detail {
namespace {

/// The context is run from within one of its tasks, and woken when the waiter is ready. What other
/// tasks of the context throw comes out of the wait.
class NestedRun {
 public:
  NestedRun(Waiter& waiter, asio::io_context& io, int& depth) : waiter_(waiter), depth_(depth) {
    ++depth_;
    waiter_.set_interrupt(
        [](void* context) noexcept { asio::post(*static_cast<asio::io_context*>(context), [] {}); },
        &io);
  }
  ~NestedRun() {
    waiter_.set_interrupt(nullptr, nullptr);
    --depth_;
  }
  NestedRun(const NestedRun&) = delete;
  NestedRun& operator=(const NestedRun&) = delete;

 private:
  Waiter& waiter_;
  int& depth_;
};

}  // namespace

void EmbeddedCore::stop() {
  constexpr auto kGrace = std::chrono::seconds(1);
  if (!posted_.close()) return;
  timers_->stop();
  guest_->presence().wait_for_others(
      [this](Waiter& waiter, TimePoint deadline) { wait(waiter, deadline); }, now() + kGrace);
}

// The tasks stay here: the context's threads would bring them in any order, and the context may
// keep what is posted for longer than the loop lives.
void EmbeddedCore::post(Task task) {
  if (!posted_.push(std::move(task))) return;
  asio::post(io_, [weak = weak_from_this()] {
    const auto self = std::static_pointer_cast<EmbeddedCore>(weak.lock());
    if (!self) return;
    self->guest_->run([self] {
      if (Task next = self->posted_.pop()) next();
    });
  });
}

bool EmbeddedCore::poll() {
  if (!io_.get_executor().running_in_this_thread()) return false;
  const Turn::Pause pause(guest_->turn());
  timers_->rearm();
  return io_.poll() != 0;
}

void EmbeddedCore::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  // Another of the embedder's threads may take the wake-up meant for this one, so it also looks by
  // itself.
  constexpr Duration kLook = std::chrono::milliseconds(1);
  thread_local int depth = 0;

  run_nested_wait_hook();
  if (waiter.ready()) return;
  if (!io_.get_executor().running_in_this_thread()) return sleep_until_ready(waiter, deadline);
  if (depth >= kMaxNestedWaits) {
    throw Overloaded("a task of the loop waits within a task that waits, and so on, more than " +
                     std::to_string(kMaxNestedWaits) +
                     " deep; use then() or co_await, which do not occupy the context's thread");
  }
  const Turn::Pause pause(guest_->turn());
  const NestedRun nested(waiter, io_, depth);
  timers_->rearm();
  const auto work = asio::make_work_guard(io_);  // run_one() stops a context without work
  while (!waiter.ready()) {
    const TimePoint time = now();
    if (deadline && time >= *deadline) break;
    const TimePoint look = deadline ? std::min(time + kLook, *deadline) : time + kLook;
    if (io_.stopped()) {
      waiter.sleep(look);
    } else {
      io_.run_one_until(look);
    }
  }
}

}  // namespace batchrpc::detail
