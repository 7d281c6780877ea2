#pragma once

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "call_benchmark/shape.hpp"
#include "common/node_pair.hpp"

namespace asio {
class io_context;
}

namespace call_benchmark {

using batchrpc_benchmarks::join_address;
using batchrpc_benchmarks::node_options;

/// The called node, named kServer, which is the root of its group.
batchrpc::Node start_server(Transport transport,
                            std::shared_ptr<batchrpc::InprocNetwork> network = nullptr,
                            batchrpc::LogLevel log_level = batchrpc::LogLevel::warning,
                            std::chrono::microseconds busy_poll = {});

/// A node with its own I/O thread; returns when the server can be called.
batchrpc::Node start_client(Transport transport, const std::string& address, std::string name,
                            std::shared_ptr<batchrpc::InprocNetwork> network = nullptr,
                            std::chrono::microseconds busy_poll = {});

/// Many nodes in one asio::io_context on one thread, as an embedding program has them: one epoll
/// loop with a connection for each node.
class EmbeddedNodes {
 public:
  /// The nodes are named `prefix` plus a number and join the group at `address`.
  EmbeddedNodes(Transport transport, const std::string& address, int count,
                const std::string& prefix,
                std::shared_ptr<batchrpc::InprocNetwork> network = nullptr);
  ~EmbeddedNodes();
  EmbeddedNodes(const EmbeddedNodes&) = delete;
  EmbeddedNodes& operator=(const EmbeddedNodes&) = delete;

  [[nodiscard]] const std::vector<batchrpc::Node>& nodes() const { return nodes_; }

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  std::vector<batchrpc::Node> nodes_;
};

/// Raises the limit of file descriptors as far as the system allows, because many nodes need many.
void allow_many_descriptors();

}  // namespace call_benchmark
