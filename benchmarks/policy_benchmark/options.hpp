#pragma once

#include <optional>
#include <string>
#include <vector>

namespace policy_benchmark {

struct Options {
  std::vector<std::string> networks{"atari", "mlp"};
  std::string policies{};  ///< a folder with one of scripts/export_policy.py a network, or empty
  std::vector<std::string> forms{};  ///< all that there are, when empty
  std::vector<int> batches{1, 4, 16, 64};
  std::vector<int> threads{1};
  std::string device = "cpu";  ///< where policies run
  bool cuda_graphs = false;
  int clients = 2;  ///< processes that call; 0: nothing is served
  int rounds = 5;
  double seconds = 0.5;  ///< of one sample
  std::string json{};    ///< a path, "-" for standard output, or empty

  std::string join{};  ///< of a client's process: where the server is
  int index = -1;      ///< which one it is; -1: this is no client
};

/// Nothing when only help was asked for, which has been printed. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The arguments of a client's process.
std::vector<std::string> client_arguments(const std::string& join, int index);

}  // namespace policy_benchmark
