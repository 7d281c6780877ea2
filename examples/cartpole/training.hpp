#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cartpole/options.hpp"
#include "cartpole/progress_display.hpp"
#include "common/interrupt.hpp"

namespace batchrpc_examples {

struct TrainingReport {
  double setup_seconds = 0;     ///< until all had joined
  double work_seconds = 0;      ///< from then to the end of the last episode
  double learning_seconds = 0;  ///< what of these the updates took
  std::int64_t env_steps = 0;
  double running_reward = 0;
  std::optional<int> solved_at_episode{};  ///< how many episodes it took
  std::vector<EpisodeRecord> episodes{};
  std::vector<std::string> lost_observers{};
  std::uint64_t policy_hash = 0;

  [[nodiscard]] double env_steps_per_s() const {
    return static_cast<double>(env_steps) / work_seconds;
  }
};

/// Is the agent of a run, and starts its observers unless the options name a rank. `started` is
/// when the set-up began. Throws what keeps it from training: batchrpc::JoinFailed,
/// std::runtime_error when all observers are lost, Interrupted.
TrainingReport train(const CartPoleOptions& options, std::chrono::steady_clock::time_point started,
                     ProgressDisplay& display, const InterruptFlag& interrupts);

}  // namespace batchrpc_examples
