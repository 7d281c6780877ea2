#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cartpole_observer/group_options.hpp"

namespace batchrpc_examples {

/// How the program shows how far it is.
enum class ProgressMode : unsigned char {
  automatic,  ///< live while training until solved, else lines
  live,       ///< one line that changes; where there is no terminal, a new one now and then
  lines,      ///< the tutorial's line after every episode
  none
};

struct CartPoleOptions {
  GroupOptions group{};

  bool batch = true;          ///< all observers' states in one inference
  int episodes = 10;          ///< of the agent's: of each an update
  bool until_solved = false;  ///< instead of a number of episodes
  int most_episodes = 500;    ///< of a training until solved
  int steps = 500;            ///< of each observer in an episode

  double learning_rate = 1e-2;
  double dropout = 0;
  bool normalize_returns = true;

  std::vector<int> sweep{};  ///< world sizes to time; empty: train once
  ProgressMode progress = ProgressMode::automatic;
  std::string json{};    ///< paths that can be written; empty: not wanted
  std::string figure{};  ///< ends in .svg

  [[nodiscard]] int observers() const { return group.world_size - 1; }
};

/// Nothing when help was asked for, which it prints. Throws UsageError.
std::optional<CartPoleOptions> parse_options(int argc, const char* const* argv);

/// `2-11`, `2,5,8` or both mixed, as the numbers in order, each once. Throws UsageError for
/// anything else, and for numbers below 2.
std::vector<int> parse_world_sizes(const std::string& text);

}  // namespace batchrpc_examples
