#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cartpole/options.hpp"
#include "cartpole/progress.hpp"
#include "cartpole_observer/returns.hpp"

namespace batchrpc_examples {

/// What one episode of the agent's came to.
struct EpisodeRecord {
  int episode = 0;  ///< counted from 0
  int observers = 0;
  std::int64_t env_steps = 0;
  double seconds = 0;  ///< the update included
  double last_reward = 0;
  double running_reward = 0;
  double mean_length = 0;  ///< of the last 100 runs

  [[nodiscard]] double env_steps_per_s() const { return static_cast<double>(env_steps) / seconds; }
};

/// Of the episode that was added to `progress` last; without its seconds.
EpisodeRecord make_record(const TrainingProgress& progress, const std::vector<Rollout>& rollouts);

/// Shows the training on standard output, and notices on standard error. On a terminal the live
/// line is always the last and changes in place; elsewhere it is a new line each second.
class ProgressDisplay {
 public:
  /// `mode` is not automatic.
  explicit ProgressDisplay(ProgressMode mode);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void episode(const EpisodeRecord& record, const TrainingProgress& progress);
  void notice(const std::string& line);

  /// `Episode 12 | 41203 env steps/s | last reward 123.4 | average 98.2 | last 100 runs 187.3`
  static std::string live_line(const EpisodeRecord& record);

 private:
  void end_line();

  const ProgressMode mode_;
  const bool terminal_;
  std::string line_;       // on the terminal, without its end
  std::string unprinted_;  // the latest, where there is no terminal
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace batchrpc_examples
