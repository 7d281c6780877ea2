#include "batchrpc/transport/socket_loop.hpp"

#include <utility>

#include "transport/embedded_core.hpp"
#include "transport/owned_core.hpp"

namespace batchrpc {

SocketLoop::SocketLoop(std::shared_ptr<detail::LoopCore> core) : core_(std::move(core)) {}

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
void SocketLoop::post(Task task) { core_->post(std::move(task)); }
void SocketLoop::defer(Task task) { core_->defer(std::move(task)); }
TimerId SocketLoop::schedule(TimePoint when, Task task) {
  return core_->schedule(when, std::move(task));
}
bool SocketLoop::cancel(TimerId timer) { return core_->timers().cancel(timer); }
bool SocketLoop::is_driving() const noexcept { return core_->is_driving(); }

}  // namespace batchrpc
