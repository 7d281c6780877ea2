#include "batchrpc/node/status_page.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "node/node_core.hpp"

// Null in programs without batchrpc::status. Not so declared in the header: its definition would be
// weak, too, and linkers that leave out what is not needed would leave it out.
#pragma weak batchrpc_status_factory

namespace batchrpc {

detail::StatusPage::~StatusPage() = default;

void NodeCore::open_status_page() {
  if (options_.status.empty()) return;
  if (batchrpc_status_factory == nullptr) {
    throw InvalidArgument(
        "NodeOptions::status is '" + options_.status +
        "', but nothing in this program serves it; link batchrpc::status "
        "(find_package(batchrpc COMPONENTS status); by hand, the static library also takes "
        "-Wl,-u,batchrpc_status_factory), or leave it empty");
  }
  auto page = batchrpc_status_factory()->open(shared_from_this(), options_.status);
  log_.info("the status page of " + name() + " is at " + page->address());
  const std::lock_guard lock(mutex_);
  status_page_ = std::move(page);
}

void NodeCore::close_status_page() {
  std::unique_ptr<detail::StatusPage> page;  // ends without the lock
  const std::lock_guard lock(mutex_);
  page.swap(status_page_);
}

std::string NodeCore::status_address() const {
  const std::lock_guard lock(mutex_);
  return status_page_ ? status_page_->address() : std::string();
}

}  // namespace batchrpc
