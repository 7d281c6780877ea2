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
  std::string logs;   ///< a folder for what each node logs; none: errors go to standard error

  // --- of the processes that the conductor starts
  Role role = Role::conductor;
  std::uint32_t index = 0;  ///< which observer
  std::uint32_t life = 0;   ///< how often it was started before
  int link = -1;            ///< the file descriptor of the link to the conductor
  std::string address{};    ///< the root's
  std::string folder{};     ///< of what outlives a killed observer
};

/// False: all that was asked for was help. Throws UsageError.
bool parse_options(Options& options, int argc, const char* const* argv);

/// What a child is started with.
std::vector<std::string> child_arguments(const Options& options);

/// A node's name: "root", "agent", "observer3".
std::string name_of(Role role, std::uint32_t index);

}  // namespace soak
