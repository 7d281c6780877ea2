#include "batchrpc/transport/socket_loop.hpp"

#include <utility>

#include "transport/embedded_core.hpp"
#include "transport/owned_core.hpp"
#include "transport/tick_counter.hpp"

namespace batchrpc {

SocketLoop::SocketLoop(std::shared_ptr<detail::LoopCore> core)
    : core_(std::move(core)),
      counter_(detail::TickCounter::is_good() ? std::make_unique<detail::TickCounter>() : nullptr) {
}

SocketLoop::~SocketLoop() { core_->stop(); }

std::shared_ptr<SocketLoop> SocketLoop::start(const SocketLoopOptions& options) {
  auto core = std::make_shared<detail::OwnedCore>(options);
  core->start();
  return std::shared_ptr<SocketLoop>(new SocketLoop(std::move(core)));
}

std::shared_ptr<SocketLoop> SocketLoop::embed(asio::io_context& context) {
  return std::shared_ptr<SocketLoop>(
      new SocketLoop(std::make_shared<detail::EmbeddedCore>(context)));
}

void SocketLoop::stop() { core_->stop(); }

// A task may drop the last handle of the loop that runs it, hence the copies.
void SocketLoop::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  const auto core = core_;
  core->wait(waiter, deadline);
}

bool SocketLoop::poll() {
  const auto core = core_;
  return core->poll();
}

TimePoint SocketLoop::now() const noexcept { return detail::LoopCore::now(); }
TimePoint SocketLoop::coarse_now() const noexcept { return detail::LoopCore::coarse_now(); }
Duration SocketLoop::coarse_lag() const noexcept { return detail::LoopCore::coarse_lag(); }
std::uint64_t SocketLoop::ticks() const noexcept {
  return counter_ ? counter_->ticks() : Loop::ticks();
}
Duration SocketLoop::time_of(std::uint64_t ticks) const noexcept {
  if (!counter_) return Loop::time_of(ticks);
  return Duration(static_cast<Duration::rep>(counter_->nanoseconds(ticks)));
}
const detail::TickCounter* SocketLoop::tick_counter() const noexcept { return counter_.get(); }
void SocketLoop::post(Task task) { core_->post(std::move(task)); }
void SocketLoop::defer(Task task) { core_->defer(std::move(task)); }
TimerId SocketLoop::schedule(TimePoint when, Task task) {
  if (counter_) counter_->measure_now_and_then();
  return core_->schedule(when, std::move(task));
}
bool SocketLoop::cancel(TimerId timer) { return core_->timers().cancel(timer); }
bool SocketLoop::is_driving() const noexcept { return core_->is_driving(); }

}  // namespace batchrpc
