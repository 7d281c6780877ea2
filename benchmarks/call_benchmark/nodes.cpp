#include "call_benchmark/nodes.hpp"

#include <sys/resource.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <batchrpc/transport/inproc.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "call_benchmark/functions.hpp"

namespace call_benchmark {

namespace {

constexpr auto kPatience = std::chrono::seconds(20);  // with nodes that start

}  // namespace

batchrpc::NodeOptions node_options(Transport transport,
                                   std::shared_ptr<batchrpc::InprocNetwork> network) {
  batchrpc::NodeOptions options;
  options.join_timeout = kPatience;
  options.network = std::move(network);
  if (transport == Transport::tcp) options.transport = batchrpc::TransportChoice::tcp;
  if (transport == Transport::unix_socket) {
    options.transport = batchrpc::TransportChoice::unix_socket;
  }
  return options;
}

batchrpc::Node start_server(Transport transport, std::shared_ptr<batchrpc::InprocNetwork> network,
                            batchrpc::LogLevel log_level) {
  batchrpc::NodeOptions options = node_options(transport, std::move(network));
  options.log_level = log_level;
  options.name = kServer;
  options.rank = 0;
  if (transport == Transport::inproc) options.join = "inproc://call_benchmark";
  batchrpc::Node node(std::move(options));
  expose_functions(node);
  return node;
}

std::string join_address(const batchrpc::Node& server, Transport transport) {
  return transport == Transport::inproc ? "inproc://call_benchmark" : server.address();
}

batchrpc::Node start_client(Transport transport, const std::string& address, std::string name,
                            std::shared_ptr<batchrpc::InprocNetwork> network) {
  batchrpc::NodeOptions options = node_options(transport, std::move(network));
  options.name = std::move(name);
  options.rank = -1;
  options.join = address;
  batchrpc::Node node(std::move(options));
  node.wait_for_peer(kServer, kPatience).get();
  return node;
}

struct EmbeddedNodes::Context {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  ~Context() {
    work.reset();
    io.stop();
    thread.join();
  }
};

EmbeddedNodes::EmbeddedNodes(Transport transport, const std::string& address, int count,
                             const std::string& prefix,
                             std::shared_ptr<batchrpc::InprocNetwork> network)
    : context_(std::make_unique<Context>()) {
  std::vector<batchrpc::Future<batchrpc::Node>> starting;
  for (int i = 0; i < count; ++i) {
    batchrpc::NodeOptions options = node_options(transport, network);
    options.name = prefix + std::to_string(i);
    options.rank = -1;
    options.join = address;
    options.io_context = &context_->io;
    starting.push_back(batchrpc::Node::start(std::move(options)));
  }
  for (batchrpc::Future<batchrpc::Node>& node : starting)
    nodes_.push_back(std::move(node).get());
}

EmbeddedNodes::~EmbeddedNodes() { nodes_.clear(); }

void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace call_benchmark
