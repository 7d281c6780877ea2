#include "tensor_benchmark/child.hpp"

#include <csignal>

#include "common/node_pair.hpp"
#include "common/talking_child.hpp"
#include "tensor_benchmark/copies.hpp"
#include "tensor_benchmark/floor.hpp"
#include "tensor_benchmark/node_side.hpp"

namespace tensor_benchmark {

batchrpc_benchmarks::SocketKind socket_kind(Transport transport) {
  return transport == Transport::unix_socket ? batchrpc_benchmarks::SocketKind::unix_socket
                                             : batchrpc_benchmarks::SocketKind::tcp;
}

int run_child(const Options& options) {
  // Ctrl-C reaches the whole foreground group; the parent then ends this process.
  std::signal(SIGINT, SIG_IGN);
  const CopyCounts counts(options.counts_file);
  const Transport transport = options.transports.front();
  if (options.role == Role::floor_server) {
    const batchrpc_benchmarks::Listener listener(socket_kind(transport));
    batchrpc_benchmarks::write_line(options.line_file, listener.address());
    serve_floor(listener);
    return 0;
  }
  const batchrpc::Node node = start_server(transport, options.handlers);
  batchrpc_benchmarks::write_line(options.line_file, join_address(node, transport));
  batchrpc_benchmarks::wait_to_be_ended();
}

}  // namespace tensor_benchmark
