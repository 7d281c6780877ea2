#pragma once

#include <vector>

#include "batchrpc/transport/transport_factory.hpp"

namespace batchrpc::test {

/// The sockets that a node of a test has.
enum class Sockets : unsigned char { all, tcp, unix_only };

/// The factories for NodeOptions::transports.
[[nodiscard]] inline std::vector<TransportFactory> transports_of(Sockets sockets) {
  if (sockets == Sockets::tcp) return {tcp_transport()};
  if (sockets == Sockets::unix_only) return {unix_transport()};
  return built_in_transports();
}

}  // namespace batchrpc::test
