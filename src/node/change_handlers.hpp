#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "batchrpc/base/log.hpp"
#include "call/local_node.hpp"

namespace batchrpc {

/// The handlers that a node calls when its peers or its own state change. Thread-safe.
class ChangeHandlers {
 public:
  /// `log` gets what handlers throw; it must outlive this.
  explicit ChangeHandlers(const Log& log) : log_(log) {}

  /// Returns a number for remove().
  std::uint64_t add(LocalNode::ChangeHandler handler);
  /// The handler may still run in another thread when this returns.
  void remove(std::uint64_t number);
  /// Calls all handlers, without a lock, in the order in which they were added.
  void call(const PeerChange& change) const;

 private:
  const Log& log_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::pair<std::uint64_t, std::shared_ptr<LocalNode::ChangeHandler>>> handlers_;
  std::uint64_t next_number_ = 1;
};

}  // namespace batchrpc
