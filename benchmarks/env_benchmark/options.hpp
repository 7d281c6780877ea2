#pragma once

#include <optional>
#include <string>
#include <vector>

#include "env_benchmark/setting.hpp"

namespace env_benchmark {

struct Options {
  std::vector<Setting> settings{};  ///< each is measured
  std::vector<Variant> variants{};
  std::vector<std::size_t> simulated_nodes{};  ///< empty: nothing is simulated
  int rounds = 3;
  std::string json;
};

/// Nothing when only help was asked for. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace env_benchmark
