#pragma once

#include <optional>
#include <string>

namespace batchrpc_examples {

/// The command line of profile_example.
struct ProfileExampleOptions {
  std::string output_dir = ".";  ///< where the traces go
  int calls = 4;                 ///< concurrent calls to each worker
  int waiting_ms = 50;           ///< duration of a call of the function that waits, in ms
  // For the processes that the program starts:
  int rank = 0;
  std::string meeting_place{};
  int worker_threads = 1;
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<ProfileExampleOptions> parse_profile_options(int argc, const char* const* argv);

}  // namespace batchrpc_examples
