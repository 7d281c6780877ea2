#pragma once

#include <batchrpc/call/node_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "batch_benchmark/setting.hpp"
#include "common/meeting_place.hpp"

namespace batch_benchmark {

/// How the handler of the section `adaptive` spends its time.
enum class Work : unsigned char { sleep, spin };

struct Options {
  std::vector<std::string> sections{};  ///< in the order of the command line
  int rounds = 5;
  double seconds = 0.2;  ///< per sample; with `peer` 5 by default
  double warm_up = 0.1;  ///< before each sample with processes; with `peer` 1 by default
  std::string json{};    ///< a path, "-" for standard output, or empty

  std::vector<int> observers{};  ///< how many at a time; 1 to 16 by default
  batchrpc_examples::TransportChoice transport = batchrpc_examples::TransportChoice::unix_socket;
  std::vector<Setting> batchers{};  ///< those of `remote`; `peer` has the first

  int callers = 8;  ///< for `peer`
  int batch = 8;    ///< for `peer`: largest batch, in rows
  bool grad = false;

  Work work = Work::sleep;
  double latency_target_ms = 12;

  std::string figures{};  ///< folder in which `sweeps` draws; empty: none

  std::string join{};  ///< for an observer's process: the address of the node that it calls
  int index = -1;      ///< for an observer's process: its index; else -1

  [[nodiscard]] bool alone(const std::string& section) const {
    return sections.size() == 1 && sections[0] == section;
  }
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The command line of an observer's process.
std::vector<std::string> observer_arguments(const std::string& join, int index,
                                            batchrpc_examples::TransportChoice transport);

}  // namespace batch_benchmark
