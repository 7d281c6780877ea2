#pragma once

#include "base/log_limit.hpp"

namespace batchrpc {

/// The log limits of a node: one for each kind of line that others could cause without end.
struct LogLimits {
  LogLimit broke_protocol;         ///< connections that were dropped for their contents
  LogLimit no_hello;               ///< connections that ended before a hello
  LogLimit handler_errors;         ///< exceptions that have left handlers
  LogLimit refused_calls;          ///< calls of functions that their caller may not call
  LogLimit parked_calls;           ///< calls that wait until their function is exposed
  LogLimit losses{1000};           ///< losses of peers, of all names together
  LogLimit dropped_notifications;  ///< notifications that this node cannot take or run
};

/// The log limits of a peer, whose connection may break again and again. Several lines may belong
/// to one event.
struct PeerLogLimits {
  LogLimit changes{20};  ///< connections that break and are made again
  LogLimit losses{20};   ///< warnings about the losses by which calls end
};

}  // namespace batchrpc
