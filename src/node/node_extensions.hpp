#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <vector>

#include "batchrpc/node/status_page.hpp"
#include "call/local_node.hpp"

namespace batchrpc {

/// What layers and components above a node keep with it: an object of each type, reports for its
/// shutdown, and its status page. Thread-safe.
class NodeExtensions {
 public:
  using Make = std::function<std::shared_ptr<void>()>;

  /// Returns the object of that type. Calls `make`, under the lock, if there is none.
  std::shared_ptr<void> get(std::type_index type, const Make& make);

  void add_end_report(LocalNode::EndReport report);
  /// Returns what all reports say, without a lock.
  [[nodiscard]] std::vector<std::string> end_reports() const;

  void set_status_page(std::unique_ptr<detail::StatusPage> page);
  /// Ends the status page, if there is one.
  void close_status_page();
  /// Returns the address of the status page; empty if there is none.
  [[nodiscard]] std::string status_address() const;

 private:
  mutable std::mutex mutex_;
  std::vector<LocalNode::EndReport> end_reports_;
  std::map<std::type_index, std::shared_ptr<void>> objects_;
  std::unique_ptr<detail::StatusPage> status_page_;
};

}  // namespace batchrpc
