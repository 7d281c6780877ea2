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

/// The agent's node. It is rank 0; rank r from 1 on is the node `observer_name(r)`.
inline constexpr const char* kAgentName = "agent";
std::string observer_name(int rank);

/// What all processes of a run are told: who they are, where they meet, and what an observer needs
/// besides.
struct GroupOptions {
  static constexpr int kMostProcesses = 1024;

  int world_size = 11;        ///< one agent, the rest observers; at least 2
  std::optional<int> rank{};  ///< nothing: this process starts all the others
  std::string join{};         ///< where rank 0 listens; nothing without a rank
  TransportChoice transport = TransportChoice::automatic;
  std::string status{};  ///< where the agent's status page is served; empty: nowhere
  std::uint64_t seed = 543;
  double gamma = 0.99;    ///< the discount, in [0, 1]
  bool launched = false;  ///< another process started this one, and will end it
};

/// Adds the command line's options for these, each with its range.
void add_group_options(CLI::App& app, GroupOptions& options);

/// Takes what torchrun (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) or mpirun say in the
/// environment, where the command line has named no rank; then checks what one option alone cannot.
/// Throws UsageError, also where the environment says that this is one of several processes, but
/// not where they meet.
void complete(GroupOptions& options);

/// For a process with a rank.
batchrpc::NodeOptions node_options(const GroupOptions& options);

/// The command line of the observer of that rank, without the program's name.
std::vector<std::string> observer_arguments(const GroupOptions& options, int rank);

}  // namespace batchrpc_examples
