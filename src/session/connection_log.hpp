#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batchrpc/base/call_diagnostics.hpp"

namespace batchrpc {

/// The latest events of a session's connections, for the stories of its calls. Not thread-safe;
/// what it has given away never changes.
class ConnectionLog {
 public:
  using Events = std::shared_ptr<const std::vector<ConnectionEvent>>;

  /// Tries that fail one after the other become one event.
  void add(ConnectionEvent event);
  /// The peer was heard again: its silence is no event any more.
  void end_silence();

  [[nodiscard]] const Events& events() const noexcept { return events_; }

 private:
  static constexpr std::size_t kKept = 16;

  Events events_;  // of which others may hold the same: each change makes another
};

}  // namespace batchrpc
