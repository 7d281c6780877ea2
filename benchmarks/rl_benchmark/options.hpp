#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// An argument of a run as it appears in reports: its name with underscores, and its value.
struct Argument {
  std::string name;
  std::string text;  ///< as given, or the default
};

/// One run for each value of the argument that has several.
struct Options {
  std::vector<Setting> settings{};      ///< one per run, at least one
  std::string x_axis{};                 ///< the argument with several values; empty: none
  std::vector<std::string> x_values{};  ///< one per run, if there is an x axis
  std::vector<Argument> arguments{};    ///< all arguments of a setting, in order
  std::string output_file_path = "benchmark_report.json";
  bool progress = true;

  /// Set if the environment says that this process is one of the run, not the launcher.
  std::optional<int> rank{};
};

/// Parses the command line. Returns nothing after it has printed help. Throws
/// batchrpc_examples::UsageError, also if the report could not be written.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The value of an argument as it appears in reports: a number, true or false, or a string.
nlohmann::json value_json(const std::string& name, const std::string& text);

}  // namespace rl_benchmark
