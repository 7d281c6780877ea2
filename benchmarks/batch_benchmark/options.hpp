#pragma once

#include <batchrpc/call/node_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "batch_benchmark/setting.hpp"
#include "common/meeting_place.hpp"

namespace batch_benchmark {

/// What the handler of the section `adaptive` does while it works.
enum class Work : unsigned char { sleep, spin };

struct Options {
  std::vector<std::string> sections{};  ///< in the order of the command line
  int rounds = 5;
  double seconds = 0.2;  ///< of one sample; with `peer` 5 by default
  double warm_up = 0.1;  ///< before each sample of calls between processes; with `peer` 1
  std::string json{};    ///< a path, "-" for standard output, or empty

  std::vector<int> observers{};  ///< how many at a time; 1 to 16 by default
  batchrpc_examples::TransportChoice transport = batchrpc_examples::TransportChoice::unix_socket;
  std::vector<Setting> batchers{};  ///< those of `remote`; `peer` has the first

  int callers = 8;  ///< of `peer`
  int batch = 8;    ///< rows of a batch of `peer` at most
  bool grad = false;

  Work work = Work::sleep;
  double latency_target_ms = 12;

  std::string figures{};  ///< where `sweeps` draws; empty: it does not

  std::string join{};  ///< of an observer's process: where the caller of observers is
  int index = -1;      ///< which one it is; -1: this is no observer

  [[nodiscard]] bool alone(const std::string& section) const {
    return sections.size() == 1 && sections[0] == section;
  }
};

/// Nothing when only help was asked for, which has been printed. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The arguments of an observer's process.
std::vector<std::string> observer_arguments(const std::string& join, int index,
                                            batchrpc_examples::TransportChoice transport);

}  // namespace batch_benchmark
