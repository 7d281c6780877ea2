#include "batchrpc/transport/asio_loop.hpp"

#include <utility>

#include "transport/embedded_core.hpp"
#include "transport/owned_core.hpp"

namespace batchrpc {

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
TimePoint AsioLoop::coarse_now() const noexcept { return detail::AsioCore::coarse_now(); }
Duration AsioLoop::coarse_lag() const noexcept { return detail::AsioCore::coarse_lag(); }
void AsioLoop::post(Task task) { core_->post(std::move(task)); }
void AsioLoop::defer(Task task) { core_->defer(std::move(task)); }
TimerId AsioLoop::schedule(TimePoint when, Task task) {
  return core_->schedule(when, std::move(task));
}
bool AsioLoop::cancel(TimerId timer) { return core_->timers().cancel(timer); }
bool AsioLoop::is_driving() const noexcept { return core_->is_driving(); }
asio::io_context& AsioLoop::context() noexcept { return core_->io(); }

}  // namespace batchrpc
