#pragma once

#include <batchrpc/batchrpc.hpp>
#include <batchrpc/transport/inproc.hpp>
#include <memory>
#include <string>

#include "common/transport.hpp"

namespace batchrpc_benchmarks {

/// The name of the called node.
constexpr const char* kServer = "server";

/// The options of a node whose calls use this transport. `network` is for inproc.
batchrpc::NodeOptions node_options(Transport transport,
                                   std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// The options of the called node, which is the root of its group.
batchrpc::NodeOptions server_options(Transport transport,
                                     std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// The address where clients of that root join.
std::string join_address(const batchrpc::Node& server, Transport transport);

/// The options of a node that joins it.
batchrpc::NodeOptions client_options(Transport transport, const std::string& address,
                                     std::string name,
                                     std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);

/// A node with its own I/O thread; returns when the server can be called.
batchrpc::Node start_client(batchrpc::NodeOptions options);

}  // namespace batchrpc_benchmarks
