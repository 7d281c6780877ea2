#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

class Transport;
struct TransportContext;

/// Makes a transport for one node; registered in NodeOptions::transports. It may be called for
/// several nodes, on different threads. It must not return null. Its exceptions are thrown by the
/// creation of the node.
using TransportFactory = std::function<std::shared_ptr<Transport>(const TransportContext&)>;

/// Each makes a transport of the library for nodes that run in real time
/// (`batchrpc/transport/tcp_transport.hpp`, `unix_transport.hpp`). For nodes inside one process use
/// inproc_transport() in `batchrpc/transport/inproc.hpp`. @{
[[nodiscard]] BATCHRPC_EXPORT TransportFactory tcp_transport();
[[nodiscard]] BATCHRPC_EXPORT TransportFactory unix_transport();
/// @}

/// The transports of a node whose NodeOptions::transports are empty: TCP and Unix sockets.
[[nodiscard]] BATCHRPC_EXPORT std::vector<TransportFactory> built_in_transports();

}  // namespace batchrpc
