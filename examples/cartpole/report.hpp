#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cartpole/options.hpp"
#include "cartpole/sweep.hpp"
#include "cartpole/training.hpp"
#include "common/figure.hpp"

namespace batchrpc_examples {

/// The content of the `--json` file. Times are in seconds. `solved_at_episode` is null if the task
/// was not solved.
nlohmann::json training_json(const CartPoleOptions& options, const TrainingReport& report);
nlohmann::json sweep_json(const CartPoleOptions& options, const std::vector<SweepRow>& rows);

/// The rewards over the episodes.
Figure learning_curve(const CartPoleOptions& options, const TrainingReport& report);
/// The seconds over the world sizes, with batch and without.
Figure comparison(const CartPoleOptions& options, const std::vector<SweepRow>& rows);

/// Writes the files that the options ask for, and reports it on standard output.
void write_results(const CartPoleOptions& options, const nlohmann::json& report,
                   const Figure& figure);

/// A summary: `10 episodes of 10 observers: 50000 environment steps in 1.45 s …`.
std::string summary(const CartPoleOptions& options, const TrainingReport& report);

}  // namespace batchrpc_examples
