#include "batchrpc/node/status_page.hpp"

#include <utility>

#include "node/node_core.hpp"

namespace batchrpc {

detail::StatusPage::~StatusPage() = default;

void NodeCore::open_status_page() {
  if (options_.status == nullptr) return;
  auto page = options_.status->open(shared_from_this());
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
