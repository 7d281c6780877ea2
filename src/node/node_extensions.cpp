#include "node/node_extensions.hpp"

#include <utility>

namespace batchrpc {

detail::StatusPage::~StatusPage() = default;

std::shared_ptr<void> NodeExtensions::get(std::type_index type, const Make& make) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<void>& object = objects_[type];
  if (!object) object = make();
  return object;
}

void NodeExtensions::add_end_report(LocalNode::EndReport report) {
  const std::lock_guard lock(mutex_);
  end_reports_.push_back(std::move(report));
}

std::vector<std::string> NodeExtensions::end_reports() const {
  std::vector<LocalNode::EndReport> reports;
  {
    const std::lock_guard lock(mutex_);
    reports = end_reports_;
  }
  std::vector<std::string> texts;
  for (const LocalNode::EndReport& report : reports) {
    for (std::string& text : report())
      texts.push_back(std::move(text));
  }
  return texts;
}

void NodeExtensions::set_status_page(std::unique_ptr<detail::StatusPage> page) {
  const std::lock_guard lock(mutex_);
  status_page_ = std::move(page);
}

void NodeExtensions::close_status_page() {
  std::unique_ptr<detail::StatusPage> page;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  page.swap(status_page_);
}

std::string NodeExtensions::status_address() const {
  const std::lock_guard lock(mutex_);
  return status_page_ ? status_page_->address() : std::string();
}

}  // namespace batchrpc
