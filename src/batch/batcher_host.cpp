#include "batch/batcher_host.hpp"

#include <utility>

#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

void BatcherHost::adopt(const std::shared_ptr<Host>& host, const BatchOptions& options,
                        Callbacks callbacks) {
  check_host(options, *host);
  host_ = host;
  executor_ = options.executor        ? options.executor
              : options.short_handler ? host->loop_tasks()
                                      : host->workers();
  change_handler_ = host->on_change(std::move(callbacks.on_change));
  end_handler_ = host->on_end(std::move(callbacks.on_end));
}

void BatcherHost::require_lock(const Host& host) const {
  if (!host.exclusive() || host.exclusive() == host_->exclusive()) return;
  throw InvalidArgument("expose: ExposeOptions::exclusive cannot be set for the batcher '" +
                        host.exposed_as() +
                        "', which already runs with another lock or none; set it when you expose "
                        "the batcher for the first time, before its first row");
}

void BatcherHost::report_statistics(const std::shared_ptr<Host>& host,
                                    Host::BatcherStatistics statistics) {
  if (asking_) return;
  statistics_number_ = host->on_metrics(std::move(statistics));
  if (statistics_number_ != 0) asking_ = host;
}

void BatcherHost::forget_callbacks() {
  for (std::uint64_t* const handler : {&change_handler_, &end_handler_}) {
    if (*handler != 0) host_->forget(std::exchange(*handler, 0));
  }
}

void BatcherHost::report_last(const std::function<BatcherMetrics()>& last) const {
  if (asking_) asking_->forget_metrics(statistics_number_, last());
}

}  // namespace batchrpc::detail
