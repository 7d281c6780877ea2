#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/figure.hpp"
#include "ppo/training.hpp"

namespace batchrpc_examples::ppo {

/// A line after an update: `Update 12  24576 steps  41203 steps/s  return 123.4 …`.
std::string progress_line(const CurvePoint& point);

/// The result of the training, in one line.
std::string summary(const PpoOptions& options, const TrainingReport& report);

/// Settings, machine, versions, results and the learning curve.
nlohmann::json report_json(const PpoOptions& options, const TrainingReport& report);

/// The mean return of the last 100 episodes over the steps of all environments.
Figure learning_curve(const PpoOptions& options, const TrainingReport& report);

/// Writes the files that the options name, and reports it. Writes no figure if no episode has
/// ended. Throws std::runtime_error.
void write_results(const PpoOptions& options, const TrainingReport& report);

}  // namespace batchrpc_examples::ppo
