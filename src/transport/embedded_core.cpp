#include "transport/embedded_core.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/nested_wait.hpp"

namespace batchrpc::detail {

void EmbeddedCore::stop() {
  stopped_ = true;
  timers_->stop();
}

void EmbeddedCore::post(Task task) {
  if (stopped_) return;
  // Weak: the context may run this after the loop is gone.
  asio::post(io_, [weak = weak_from_this(), task = std::move(task)]() mutable {
    const auto self = std::static_pointer_cast<EmbeddedCore>(weak.lock());
    if (!self) return;
    self->turn_->run([self, task = std::move(task)]() mutable {
      if (!self->stopped_) task();
    });
  });
}

bool EmbeddedCore::poll() {
  if (!io_.get_executor().running_in_this_thread()) return false;
  const Turn::Pause pause(*turn_);
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
  ++depth;
  const Turn::Pause pause(*turn_);
  timers_->rearm();
  const auto work = asio::make_work_guard(io_);  // run_one() stops a context without work
  waiter.set_interrupt(
      [](void* io) noexcept { asio::post(*static_cast<asio::io_context*>(io), [] {}); }, &io_);
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
  waiter.set_interrupt(nullptr, nullptr);
  --depth;
}

}  // namespace batchrpc::detail
