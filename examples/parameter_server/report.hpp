#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/figure.hpp"
#include "parameter_server/options.hpp"
#include "parameter_server/server_process.hpp"

namespace batchrpc_examples {

/// The result of `--check`.
struct CheckResult {
  static constexpr double kMost = 1e-6;

  double relative_difference = 0;
  std::string not_checked{};  ///< why it could not compare; empty if it could
  [[nodiscard]] bool passed() const { return not_checked.empty() && relative_difference <= kMost; }
};

nlohmann::json run_json(const ParameterServerOptions& options, const ServerRun& run,
                        const std::optional<CheckResult>& check);
/// The time of each iteration by phase. Needs at least one iteration.
Figure phases_figure(const ParameterServerOptions& options, const ServerRun& run);
/// A summary in one line.
std::string summary(const ParameterServerOptions& options, const ServerRun& run);
/// A hash of the values without buffers, equal for equal bits. The values must be defined.
std::string parameters_hash(const ServerRun& run);

/// Writes the files that the options ask for, and reports it.
void write_results(const ParameterServerOptions& options, const ServerRun& run,
                   const std::optional<CheckResult>& check);

}  // namespace batchrpc_examples
