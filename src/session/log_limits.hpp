#pragma once

#include "base/log_limit.hpp"

namespace batchrpc {

/// Of a node: one for each kind of line that others could have it write without end.
struct LogLimits {
  LogLimit broke_protocol;         ///< connections that were dropped for what came through them
  LogLimit no_hello;               ///< connections of which nobody said who he is
  LogLimit dropped_notifications;  ///< that find no function of that name and signature
};

/// Of a peer, whose connection may break again and again. Several lines tell one story.
struct PeerLogLimits {
  LogLimit changes{20};  ///< connections that break and are made again
  LogLimit losses{20};   ///< what calls end by: warnings
};

}  // namespace batchrpc
