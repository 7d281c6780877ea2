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

  /// Adds an event. Attempts to connect that fail one after the other become one event.
  void add(ConnectionEvent event);
  /// Removes the silence that was added last: the peer was heard again.
  void end_silence();

  /// The events so far; null: there are none. What it returns never changes.
  [[nodiscard]] Events events() const;

 private:
  static constexpr std::size_t kKept = 16;

  mutable std::mutex mutex_;
  Events events_;  // others may hold the same: each change makes another
};

}  // namespace batchrpc
