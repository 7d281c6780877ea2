#pragma once

#include <batchrpc/call/node_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/meeting_place.hpp"

namespace CLI {
class App;
}

namespace batchrpc_examples {

/// The name of the agent's node, which is rank 0. The node of rank r ≥ 1 is `observer_name(r)`.
inline constexpr const char* kAgentName = "agent";
std::string observer_name(int rank);

/// The options that all processes of a run share: their rank, their meeting address, and an
/// observer's settings.
struct GroupOptions {
  static constexpr int kMostProcesses = 1024;

  int world_size = 11;        ///< one agent, the rest observers; at least 2
  std::optional<int> rank{};  ///< nothing: this process starts all the others
  std::string join{};         ///< where rank 0 listens; nothing without a rank
  TransportChoice transport = TransportChoice::automatic;
  std::string status{};  ///< where the agent's status page is served; empty: nowhere
  std::uint64_t seed = 543;
  double gamma = 0.99;    ///< the discount factor, in [0, 1]
  bool launched = false;  ///< another process started this one, and will end it
};

/// Adds the command-line options, with their ranges.
void add_group_options(CLI::App& app, GroupOptions& options);

/// Takes the settings of torchrun (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) or mpirun from
/// the environment, unless the command line gives a rank. Then checks the combination of options.
/// Throws UsageError, also if the environment shows several processes but no meeting address.
void complete(GroupOptions& options);

/// The options of a node, for a process with a rank.
batchrpc::NodeOptions node_options(const GroupOptions& options);

/// The command line of the observer of that rank, without the program's name.
std::vector<std::string> observer_arguments(const GroupOptions& options, int rank);

}  // namespace batchrpc_examples
