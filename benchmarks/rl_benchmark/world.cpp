#include "rl_benchmark/world.hpp"

#include <algorithm>
#include <batchrpc/transport/tcp_address.hpp>
#include <cstdint>

namespace rl_benchmark {
namespace {

namespace rpc = batchrpc;

std::string meeting_place(const Setting& setting) {
  const auto port = static_cast<std::uint16_t>(setting.master_port);
  if (setting.transport != batchrpc_examples::TransportChoice::unix_socket)
    return rpc::TcpAddress{.host = setting.master_addr, .port = port}.to_string();
  return "unix-abstract:rl_benchmark-" + std::to_string(port);
}

}  // namespace

bool is_agent(const Setting& setting, int rank) { return rank >= 1 && rank <= setting.agents; }

std::string name_of(const Setting& setting, int rank) {
  if (rank == 0) return kCoordinator;
  if (!is_agent(setting, rank)) return "observer" + std::to_string(rank);
  return setting.agents == 1 ? "agent" : "agent" + std::to_string(rank);
}

std::vector<std::string> agent_names(const Setting& setting) {
  std::vector<std::string> names;
  for (int agent = 0; agent < setting.agents; ++agent)
    names.push_back(name_of(setting, 1 + agent));
  return names;
}

std::vector<std::string> observer_names(const Setting& setting) {
  std::vector<std::string> names;
  for (int observer = 0; observer < setting.observers(); ++observer)
    names.push_back(name_of(setting, 1 + setting.agents + observer));
  return names;
}

int agent_of(const Setting& setting, int observer) { return observer % setting.agents; }

std::vector<std::string> observers_of(const Setting& setting, int agent) {
  std::vector<std::string> names;
  for (int observer = agent; observer < setting.observers(); observer += setting.agents)
    names.push_back(name_of(setting, 1 + setting.agents + observer));
  return names;
}

rpc::NodeOptions node_options(const Setting& setting, int rank) {
  rpc::NodeOptions options;
  options.name = name_of(setting, rank);
  options.rank = rank;
  options.world_size = setting.world_size;
  options.join = meeting_place(setting);
  options.transports = batchrpc_examples::transports_of(setting.transport, options.join);
  options.num_worker_threads = std::max(setting.num_worker_threads, 1);
  options.busy_poll = setting.busy_poll;
  options.logging.level = rpc::LogLevel::error;  // the coordinator reports losses itself
  return options;
}

}  // namespace rl_benchmark
