#pragma once

#include "base/log_limit.hpp"

namespace batchrpc {

/// Of a node: one for each kind of line that others could have it write without end.
struct LogLimits {
  LogLimit broke_protocol;  ///< connections that were dropped for what came through them
  LogLimit no_hello;        ///< connections of which nobody said who he is
};

}  // namespace batchrpc
