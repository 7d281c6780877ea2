#include "call_benchmark/nodes.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <thread>
#include <utility>

#include "call_benchmark/functions.hpp"

namespace call_benchmark {

namespace {

/// How many nodes join at a time. A node refuses connections while 64 wait for a hello, and the
/// memory for such a crowd would be counted as memory of connections.
constexpr int kStarting = 16;

}  // namespace

batchrpc::Node start_server(Transport transport, std::shared_ptr<batchrpc::InprocNetwork> network,
                            batchrpc::LogLevel log_level, std::chrono::microseconds busy_poll) {
  batchrpc::NodeOptions options =
      batchrpc_benchmarks::server_options(transport, std::move(network));
  options.logging.level = log_level;
  options.busy_poll = busy_poll;
  batchrpc::Node node(std::move(options));
  expose_functions(node);
  return node;
}

batchrpc::Node start_client(Transport transport, const std::string& address, std::string name,
                            std::shared_ptr<batchrpc::InprocNetwork> network,
                            std::chrono::microseconds busy_poll) {
  batchrpc::NodeOptions options =
      batchrpc_benchmarks::client_options(transport, address, std::move(name), std::move(network));
  options.busy_poll = busy_poll;
  return batchrpc_benchmarks::start_client(std::move(options));
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
  while (static_cast<int>(nodes_.size()) < count) {
    std::vector<batchrpc::Future<batchrpc::Node>> starting;
    const int first = static_cast<int>(nodes_.size());
    for (int i = first; i < std::min(count, first + kStarting); ++i) {
      batchrpc::NodeOptions options = batchrpc_benchmarks::client_options(
          transport, address, prefix + std::to_string(i), network);
      options.io_context = &context_->io;
      starting.push_back(batchrpc::Node::start(std::move(options)));
    }
    for (batchrpc::Future<batchrpc::Node>& node : starting)
      nodes_.push_back(std::move(node).get());
  }
}

EmbeddedNodes::~EmbeddedNodes() { nodes_.clear(); }

void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace call_benchmark
