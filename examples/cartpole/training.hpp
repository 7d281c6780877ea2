#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "cartpole/options.hpp"
#include "cartpole/progress_display.hpp"

namespace batchrpc_examples {

struct TrainingReport {
  double setup_seconds = 0;     ///< until all had joined
  double work_seconds = 0;      ///< from then to the end of the last episode
  double learning_seconds = 0;  ///< the part of these that the updates took
  std::int64_t env_steps = 0;
  double running_reward = 0;
  std::optional<int> solved_at_episode{};  ///< the number of episodes it took
  std::vector<EpisodeRecord> episodes{};
  std::vector<std::string> lost_observers{};
  std::uint64_t policy_hash = 0;

  [[nodiscard]] double env_steps_per_s() const {
    return static_cast<double>(env_steps) / work_seconds;
  }
};

/// Runs the agent, and starts its observers unless the options give a rank. `started` is when the
/// set-up began. Throws batchrpc::JoinFailed, std::runtime_error if all observers are lost, and
/// batchrpc::Interrupted.
TrainingReport train(const CartPoleOptions& options, std::chrono::steady_clock::time_point started,
                     ProgressDisplay& display, const batchrpc::InterruptFlag& interrupts);

}  // namespace batchrpc_examples
