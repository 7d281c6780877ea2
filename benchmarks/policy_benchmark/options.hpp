#pragma once

#include <optional>
#include <string>
#include <vector>

namespace policy_benchmark {

struct Options {
  std::vector<std::string> networks{"atari", "mlp"};
  std::string
      policies{};  ///< a folder with one folder of scripts/export_policy.py per network, or empty
  std::vector<std::string> forms{};  ///< empty: all available forms
  std::vector<int> batches{1, 4, 16, 64};
  std::vector<int> threads{1};
  std::string device = "cpu";  ///< where policies run
  bool cuda_graphs = false;
  int clients = 2;  ///< processes that call; 0: do not serve
  int rounds = 5;
  double seconds = 0.5;  ///< per sample
  std::string json{};    ///< a path, "-" for standard output, or empty

  std::string join{};  ///< for a client's process: the server's address
  int index = -1;      ///< for a client's process: its index; else -1
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The command line of a client's process.
std::vector<std::string> client_arguments(const std::string& join, int index);

}  // namespace policy_benchmark
