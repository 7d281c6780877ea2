#pragma once

#include <optional>
#include <string>
#include <vector>

#include "env_benchmark/setting.hpp"

namespace env_benchmark {

struct Options {
  std::vector<Setting> settings{};  ///< all are measured
  std::vector<Variant> variants{};
  std::vector<std::size_t> simulated_nodes{};  ///< empty: no simulation
  int rounds = 3;
  std::string json;
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace env_benchmark
