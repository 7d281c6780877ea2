#include "call_benchmark/child.hpp"

#include <csignal>

#include "call_benchmark/floor.hpp"
#include "call_benchmark/memory.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/overload.hpp"
#include "call_benchmark/strangers.hpp"

namespace call_benchmark {

using batchrpc_benchmarks::wait_to_be_ended;

int run_child(const Options& options) {
  // Ctrl-C reaches the whole foreground group; the parent then ends this process.
  std::signal(SIGINT, SIG_IGN);
  const Transport transport = options.transports.front();
  const auto say = [&](const std::string& line) {
    batchrpc_benchmarks::write_line(options.line_file, line);
  };
  switch (options.role) {
    case Role::floor_server: {
      const auto acceptor = listen_on_socket(transport);
      say(acceptor->address());
      serve_floor(*acceptor);
      return 0;
    }
    case Role::node_server: {
      const batchrpc::Node node = start_server(transport, nullptr, batchrpc::LogLevel::warning,
                                               std::chrono::microseconds(options.busy_poll));
      say(join_address(node, transport));
      wait_to_be_ended();
    }
    case Role::pestered_server: {
      const batchrpc::Node node = start_server(transport, nullptr, batchrpc::LogLevel::error);
      say(join_address(node, transport));
      wait_to_be_ended();
    }
    case Role::overloaded_server: {
      const batchrpc::Node node = start_overloaded_server(options.count != 0);
      say(join_address(node, transport));
      wait_to_be_ended();
    }
    case Role::strangers:
      say("coming");
      run_strangers(static_cast<Strangers>(options.count), options.address);
    case Role::many_nodes:
      run_many_nodes(transport, options.count, say);
      wait_to_be_ended();
    case Role::joining_nodes:
      run_joining_nodes(transport, options.address, options.count, say);
      wait_to_be_ended();
    case Role::calling_node:
      run_calling_node(transport, options.address, options.count, say);
      return 0;
    case Role::called_node:
      run_called_node(transport, options.count, say);
      wait_to_be_ended();
    case Role::pending_calls:
      run_pending_calls(transport, options.address, options.count, say);
      return 0;
    case Role::measure:
      break;
  }
  return 2;
}

}  // namespace call_benchmark
