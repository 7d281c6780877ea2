#pragma once

#include <optional>
#include <string>

namespace batchrpc_examples {

/// The command line of profile_example.
struct ProfileExampleOptions {
  std::string output_dir = ".";  ///< where the traces go
  int calls = 4;                 ///< to each worker, of a tuning
  int waiting_ms = 50;           ///< what a call of the function that waits takes
  // Of the processes that the program starts:
  int rank = 0;
  std::string meeting_place{};
  int worker_threads = 1;
};

/// Nothing when only help was asked for, which has been printed. Throws UsageError.
std::optional<ProfileExampleOptions> parse_profile_options(int argc, const char* const* argv);

}  // namespace batchrpc_examples
