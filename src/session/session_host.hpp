#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "batchrpc/base/log.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "metrics/node_counters.hpp"
#include "session/log_limits.hpp"
#include "session/payload_memory.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

class CallSink;
class CallTracer;
class Session;

/// The parts of a node that its sessions use. Everything referred to lives as long as the
/// SessionHost.
struct SessionParts {
  const NodeOptions& options;
  const Log& log;
  LogLimits& log_limits;
  CallTracer& tracer;
  CallSink& calls;                   ///< takes the calls that peers make
  NodeCounters* counters = nullptr;  ///< null: the node's calls are not counted
  /// The memory for received large payloads; null: the allocator is used.
  std::shared_ptr<PayloadMemory> payload_memory{};
};

/// The node of a session: provides the shared parts, and is notified of the session's life.
class SessionHost {
 public:
  virtual ~SessionHost() = default;

  [[nodiscard]] virtual const SessionParts& parts() const noexcept = 0;
  /// The node, for codecs (detail::CurrentNode). Sessions pass it on.
  [[nodiscard]] virtual std::shared_ptr<LocalNode> node() = 0;
  [[nodiscard]] virtual wire::Hello own_hello() const = 0;
  /// Writes into `hello` which incarnation of the peer of that name it is for, and the secret by
  /// which this node proves its identity to it. Empty: to the root, before its name is known.
  virtual void address(wire::Hello& hello, std::string_view peer) const = 0;
  /// Whether this is the copy in a forked child, where locks may be held by threads of the parent.
  [[nodiscard]] virtual bool is_forked_copy() const noexcept = 0;

  /// Finds the session that is to be resumed on the connection of `half_open`, which a peer made to
  /// this node; null for a new one. On the loop.
  virtual std::shared_ptr<Session> find_session(const Session& half_open,
                                                const wire::Hello& hello) = 0;
  /// The peer has said its name. Throws an Error to refuse it. Returns false if the session must
  /// wait until the group introduces the peer; then Session::introduced() follows. On the loop.
  [[nodiscard]] virtual bool admit(Session& session, const wire::Hello& hello) = 0;
  /// The session has lost its connection, or failed to connect. It waits for another one. On the
  /// loop.
  virtual void session_detached(const std::shared_ptr<Session>& session,
                                const std::string& why) = 0;
  /// The session has another connection. On the loop.
  virtual void session_resumed(Session& session) = 0;
  /// The session has ended; its pending calls wait for fail_calls(). On the loop.
  virtual void session_closed(const std::shared_ptr<Session>& session, const std::string& why) = 0;

  /// Access to the parts:
  /// @{
  [[nodiscard]] const NodeOptions& options() const noexcept { return parts().options; }
  [[nodiscard]] const Log& log() const noexcept { return parts().log; }
  [[nodiscard]] LogLimits& log_limits() const noexcept { return parts().log_limits; }
  /// @}
};

}  // namespace batchrpc
