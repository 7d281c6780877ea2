#pragma once

#include <exception>
#include <memory>
#include <string>

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

/// What a session needs of its node.
class SessionHost {
 public:
  virtual ~SessionHost() = default;

  /// The node itself, for codecs (detail::CurrentNode).
  [[nodiscard]] virtual std::shared_ptr<NodeCore> core() = 0;
  [[nodiscard]] virtual const NodeOptions& options() const noexcept = 0;
  [[nodiscard]] virtual const Log& log() const noexcept = 0;
  [[nodiscard]] virtual CallTracer& tracer() noexcept = 0;
  [[nodiscard]] virtual LogLimits& log_limits() noexcept = 0;
  [[nodiscard]] virtual wire::Hello own_hello() const = 0;
  /// Whether this is the copy in a forked child, where locks may be held by threads of the parent.
  [[nodiscard]] virtual bool is_forked_copy() const noexcept = 0;
  /// Where the calls that peers make go; lives as long as the node.
  [[nodiscard]] virtual CallSink& call_sink() noexcept = 0;
  /// What is counted of its calls; null: nothing.
  [[nodiscard]] virtual NodeCounters* counters() noexcept { return nullptr; }
  /// Where large payloads are received; null: in memory of the allocator.
  [[nodiscard]] virtual std::shared_ptr<PayloadMemory> payload_memory() const { return nullptr; }
  /// The session that the connection of `half_open`, which somebody made to this node, is to go on
  /// with; null for a new one. On the loop.
  virtual std::shared_ptr<Session> find_session(const Session& half_open,
                                                const wire::Hello& hello) = 0;
  /// The other side has said who it is. Throws an Error to refuse it. On the loop.
  virtual void admit(Session& session, const wire::Hello& hello) = 0;
  /// The session has lost its connection, or a try to have one: it waits for another. On the loop.
  virtual void session_detached(const std::shared_ptr<Session>& session,
                                const std::string& why) = 0;
  /// It has another connection. On the loop.
  virtual void session_resumed(Session& session) = 0;
  /// The session has ended; its pending calls wait for fail_calls(). On the loop.
  virtual void session_closed(const std::shared_ptr<Session>& session, const std::string& why) = 0;
};

}  // namespace batchrpc
