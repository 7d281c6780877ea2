#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace soak {

inline constexpr std::uint32_t kObservers = 10;

enum class Role { conductor, root, agent, observer };

struct Options {
  int seconds = 120;
  std::uint64_t seed = 1;
  bool calm = false;  ///< no faults: nothing may fail
  std::string logs;   ///< folder for the nodes' logs; empty: errors go to standard error

  // --- for the processes that the conductor starts
  Role role = Role::conductor;
  std::uint32_t index = 0;  ///< index of the observer
  std::uint32_t life = 0;   ///< how often it was started before
  int link = -1;            ///< the file descriptor of the link to the conductor
  std::string address{};    ///< of the root
  std::string folder{};     ///< for data that outlives a killed observer
};

/// Parses the command line. Returns false if only help was asked for. Throws UsageError.
bool parse_options(Options& options, int argc, const char* const* argv);

/// The command line of a child.
std::vector<std::string> child_arguments(const Options& options);

/// The name of a node: "root", "agent", "observer3".
std::string name_of(Role role, std::uint32_t index);

}  // namespace soak
