#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cartpole_observer/group_options.hpp"

namespace batchrpc_examples {

/// How the program shows its progress.
enum class ProgressMode : unsigned char {
  automatic,  ///< live while training until solved, else lines
  live,       ///< one line that changes; without a terminal, a new line now and then
  lines,      ///< the tutorial's line after every episode
  none
};

struct CartPoleOptions {
  GroupOptions group{};

  bool batch = true;          ///< one inference for the states of all observers
  int episodes = 10;          ///< the agent's episodes, with an update after each
  bool until_solved = false;  ///< train until solved instead of for a number of episodes
  int most_episodes = 500;    ///< limit for training until solved
  int steps = 500;            ///< steps of each observer per episode

  double learning_rate = 1e-2;
  double dropout = 0;
  bool normalize_returns = true;

  std::vector<int> sweep{};  ///< world sizes to time; empty: train once
  ProgressMode progress = ProgressMode::automatic;
  std::string json{};    ///< writable path; empty: not wanted
  std::string figure{};  ///< ends in .svg

  [[nodiscard]] int observers() const { return group.world_size - 1; }
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<CartPoleOptions> parse_options(int argc, const char* const* argv);

/// Parses `2-11`, `2,5,8` or a mix of both. Returns the numbers in ascending order, each once.
/// Throws UsageError for anything else and for numbers below 2.
std::vector<int> parse_world_sizes(const std::string& text);

}  // namespace batchrpc_examples
