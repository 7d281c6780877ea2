#pragma once

#include <memory>

#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/transport.hpp"

namespace batchrpc::detail {

/// The node's loop, as sockets need it. Throws InvalidArgument that names the `factory`.
inline std::shared_ptr<SocketLoop> socket_loop_of(const TransportContext& context,
                                                  const char* factory) {
  if (auto loop = std::dynamic_pointer_cast<SocketLoop>(context.loop)) return loop;
  throw InvalidArgument(
      std::string("NodeOptions::transports: ") + factory +
      " needs a loop with sockets; leave NodeOptions::simulation.loop empty, or give it a "
      "SocketLoop");
}

}  // namespace batchrpc::detail
