#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/figure.hpp"
#include "parameter_server/options.hpp"
#include "parameter_server/server_process.hpp"

namespace batchrpc_examples {

/// What `--check` found.
struct CheckResult {
  static constexpr double kMost = 1e-6;

  double relative_difference = 0;
  std::string not_checked{};  ///< why there was nothing to compare with; empty: there was
  [[nodiscard]] bool passed() const { return not_checked.empty() && relative_difference <= kMost; }
};

nlohmann::json run_json(const ParameterServerOptions& options, const ServerRun& run,
                        const std::optional<CheckResult>& check);
/// The time of each iteration by phase. Needs an iteration.
Figure phases_figure(const ParameterServerOptions& options, const ServerRun& run);
/// One line for people.
std::string summary(const ParameterServerOptions& options, const ServerRun& run);
/// Of the values, which are not undefined, without buffers: equal for equal bits.
std::string parameters_hash(const ServerRun& run);

/// Writes what the options ask for, and says so.
void write_results(const ParameterServerOptions& options, const ServerRun& run,
                   const std::optional<CheckResult>& check);

}  // namespace batchrpc_examples
