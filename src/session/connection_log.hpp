#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "batchrpc/base/call_diagnostics.hpp"

namespace batchrpc {

/// The latest events of a session's connections, for the diagnostics of its calls. Thread-safe.
class ConnectionLog {
 public:
  using Events = std::shared_ptr<const std::vector<ConnectionEvent>>;

  /// Adds an event. Consecutive failed attempts to connect become one event.
  void add(ConnectionEvent event);
  /// Removes the silence that was added last: the peer was heard again.
  void end_silence();

  /// Returns the events so far; null: there are none. The returned events never change.
  [[nodiscard]] Events events() const;

 private:
  static constexpr std::size_t kKept = 16;

  mutable std::mutex mutex_;
  Events events_;  // may be shared with readers, so each change makes a new one
};

}  // namespace batchrpc
