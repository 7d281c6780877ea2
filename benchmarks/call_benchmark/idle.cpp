#include "call_benchmark/idle.hpp"

#include <batchrpc/transport/inproc.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "call_benchmark/child.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/report.hpp"
#include "common/cpu_time.hpp"

namespace call_benchmark {

nlohmann::json measure_idle(const Options& options, std::ostream& out, Interrupt& interrupt) {
  nlohmann::json entries = nlohmann::json::array();
  const auto add = [&](Transport transport, const char* side, double share) {
    char line[128];
    std::snprintf(line, sizeof line, "%-9s %-8s %7.3f %% of a core\n",
                  std::string(to_string(transport)).c_str(), side, share * 100);
    out << line << std::flush;
    entries.push_back({{"system", "batchrpc"},
                       {"case", "idle"},
                       {"transport", to_string(transport)},
                       {"side", side},
                       {"cpu_share", share},
                       {"seconds", options.seconds},
                       {"machine", machine()}});
  };
  out << "CPU time of connected nodes that do nothing, over " << options.seconds << " s\n";
  for (const Transport transport : options.transports) {
    const bool inproc = transport == Transport::inproc;
    std::shared_ptr<batchrpc::InprocNetwork> network;
    std::optional<batchrpc::Node> server;
    std::optional<Child> child;
    std::string address;
    if (inproc) {
      network = batchrpc::InprocNetwork::make();
      server.emplace(start_server(transport, network));
      address = join_address(*server, transport);
    } else {
      child.emplace(Role::node_server, transport);
      address = child->read_line(interrupt);
    }
    const batchrpc::Node node = start_client(transport, address, "client", network);
    node.call<&scale_on_workers>(kServer, 2.0, 20, 2).get();

    const batchrpc_benchmarks::CpuWatch cpu(child ? std::optional(child->pid()) : std::nullopt);
    const Clock::time_point begin = Clock::now();
    interrupt.sleep_until(begin + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(options.seconds)));
    interrupt.check();
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    const CpuTime used = cpu.passed();
    add(transport, inproc ? "both" : "calling", used.client / passed);
    if (child) add(transport, "called", used.server / passed);
  }
  return entries;
}

}  // namespace call_benchmark
