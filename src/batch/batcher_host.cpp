#include "batch/batcher_host.hpp"

#include <utility>

#include "batch/calling_thread.hpp"
#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/socket_loop.hpp"

namespace batchrpc::detail {

void BatcherHost::adopt(const Host& host, const BatchOptions& options, Callbacks callbacks) {
  check_host(options, host);
  host_ = host;
  executor_ = options.executor        ? options.executor
              : options.short_handler ? host.loop_tasks
                                      : host.workers;
  change_handler_ = host.on_change(std::move(callbacks.on_change));
  end_handler_ = host.on_end(std::move(callbacks.on_end));
}

void BatcherHost::require_lock(const Host& host) const {
  if (!host.exclusive || host.exclusive == host_->exclusive) return;
  throw InvalidArgument("expose: ExposeOptions::exclusive comes too late for the batcher '" +
                        host.exposed_as +
                        "', which runs already, with another lock or none: give it when the "
                        "batcher is exposed first, before its first row");
}

void BatcherHost::tell_figures(const Host& host, const Figures& figures) {
  if (forget_figures_ || !host.on_metrics) return;
  forget_figures_ = [forget = host.forget_metrics, number = host.on_metrics(figures)](
                        BatcherMetrics last) { forget(number, std::move(last)); };
}

void BatcherHost::forget_callbacks() {
  for (std::uint64_t* const handler : {&change_handler_, &end_handler_}) {
    if (*handler != 0) host_->forget(std::exchange(*handler, 0));
  }
}

void BatcherHost::tell_last(const std::function<BatcherMetrics()>& last) const {
  if (forget_figures_) forget_figures_(last());
}

Host own_host() {
  Host host;
  const std::shared_ptr<Loop> loop = SocketLoop::start();
  host.workers = loop;
  host.loop_tasks = std::make_shared<CallingThread>();
  host.loop = loop;
  host.is_live = [](std::string_view) { return true; };
  host.is_current = [](const PeerIdentity&) { return true; };
  host.may_be_peer = [](std::string_view) { return true; };
  host.on_change = [](const std::function<void()>&) -> std::uint64_t { return 0; };
  host.on_end = host.on_change;
  host.forget = [](std::uint64_t) {};
  return host;
}

}  // namespace batchrpc::detail
