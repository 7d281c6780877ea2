#include "batchrpc/transport/asio_loop.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "transport/embedded_core.hpp"
#include "transport/owned_core.hpp"

namespace batchrpc {
namespace detail {

void EmbeddedCore::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  // Another of the embedder's threads may take the wake-up meant for this one, so it also looks by
  // itself.
  constexpr Duration kLook = std::chrono::milliseconds(1);
  thread_local int depth = 0;

  run_nested_wait_hook();
  if (waiter.ready()) return;
  if (!is_driving()) return sleep_until_ready(waiter, deadline);
  if (depth >= kMaxNestedWaits) {
    throw Overloaded("a task of the loop waits within a task that waits, and so on, more than " +
                     std::to_string(kMaxNestedWaits) +
                     " deep; use then() or co_await, which do not occupy the context's thread");
  }
  ++depth;
  timers_->rearm();
  const auto work = asio::make_work_guard(io_);  // run_one() stops a context that has nothing to do
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

}  // namespace detail

AsioLoop::AsioLoop(std::shared_ptr<detail::AsioCore> core) : core_(std::move(core)) {}

AsioLoop::~AsioLoop() { core_->stop(); }

std::shared_ptr<AsioLoop> AsioLoop::start(const AsioLoopOptions& options) {
  auto core = std::make_shared<detail::OwnedCore>(options);
  core->start();
  return std::shared_ptr<AsioLoop>(new AsioLoop(std::move(core)));
}

std::shared_ptr<AsioLoop> AsioLoop::embed(asio::io_context& context) {
  return std::shared_ptr<AsioLoop>(new AsioLoop(std::make_shared<detail::EmbeddedCore>(context)));
}

void AsioLoop::stop() { core_->stop(); }

// A task may drop the last handle of the loop that runs it, hence the copies.
void AsioLoop::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  const auto core = core_;
  core->wait(waiter, deadline);
}

bool AsioLoop::poll() {
  const auto core = core_;
  return core->poll();
}

TimePoint AsioLoop::now() const noexcept { return detail::AsioCore::now(); }
void AsioLoop::post(Task task) { core_->post(std::move(task)); }
TimerId AsioLoop::schedule(TimePoint when, Task task) {
  return core_->schedule(when, std::move(task));
}
bool AsioLoop::cancel(TimerId timer) { return core_->timers().cancel(timer); }
bool AsioLoop::is_driving() const noexcept { return core_->is_driving(); }
asio::io_context& AsioLoop::context() noexcept { return core_->io(); }

}  // namespace batchrpc
