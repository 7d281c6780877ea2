#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// An argument of a run as reports have it: its name with underscores, and its value.
struct Argument {
  std::string name;
  std::string text;  ///< as it was given, or its default
};

/// A run for each value of the one argument that has several.
struct Options {
  std::vector<Setting> settings{};      ///< one a run, at least one
  std::string x_axis{};                 ///< the argument with several values; empty: none has
  std::vector<std::string> x_values{};  ///< one a run, where there is an x axis
  std::vector<Argument> arguments{};    ///< all of a setting, in order
  std::string output_file_path = "benchmark_report.json";
  bool progress = true;

  /// By the environment this is that process of the run, not the one that starts all.
  std::optional<int> rank{};
};

/// Nothing when help was asked for. Throws batchrpc_examples::UsageError, also where the report
/// could not be written.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// A value of the argument of that name as reports have it: a number, true or false, a string.
nlohmann::json value_json(const std::string& name, const std::string& text);

}  // namespace rl_benchmark
