#include "common/node_pair.hpp"

#include <chrono>
#include <utility>

namespace batchrpc_benchmarks {

namespace {

constexpr auto kPatience = std::chrono::seconds(20);  // for nodes that start
constexpr const char* kInprocAddress = "inproc://benchmark";

}  // namespace

batchrpc::NodeOptions node_options(Transport transport,
                                   std::shared_ptr<batchrpc::InprocNetwork> network) {
  batchrpc::NodeOptions options;
  options.join_timeout = kPatience;
  if (network) options.transports = {batchrpc::inproc_transport(std::move(network))};
  if (transport == Transport::tcp || transport == Transport::tls)
    options.transports = {batchrpc::tcp_transport()};
  if (transport == Transport::tcp) {
    options.security.insecure = true;
    options.logging.level = batchrpc::LogLevel::error;  // it would warn that it is insecure
  }
  if (transport == Transport::unix_socket) options.transports = {batchrpc::unix_transport()};
  return options;
}

batchrpc::NodeOptions server_options(Transport transport,
                                     std::shared_ptr<batchrpc::InprocNetwork> network) {
  batchrpc::NodeOptions options = node_options(transport, std::move(network));
  options.name = kServer;
  options.rank = 0;
  if (transport == Transport::inproc) options.join = kInprocAddress;
  return options;
}

std::string join_address(const batchrpc::Node& server, Transport transport) {
  return transport == Transport::inproc ? kInprocAddress : server.address();
}

batchrpc::NodeOptions client_options(Transport transport, const std::string& address,
                                     std::string name,
                                     std::shared_ptr<batchrpc::InprocNetwork> network) {
  batchrpc::NodeOptions options = node_options(transport, std::move(network));
  options.name = std::move(name);
  options.rank = -1;
  options.join = address;
  return options;
}

batchrpc::Node start_client(batchrpc::NodeOptions options) {
  batchrpc::Node node(std::move(options));
  node.wait_for_peer(kServer, kPatience).get();
  return node;
}

}  // namespace batchrpc_benchmarks
