#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cartpole/options.hpp"
#include "cartpole/progress.hpp"
#include "cartpole_observer/returns.hpp"

namespace batchrpc_examples {

/// The results of one episode of the agent.
struct EpisodeRecord {
  int episode = 0;  ///< counted from 0
  int observers = 0;
  std::int64_t env_steps = 0;
  double seconds = 0;  ///< including the update
  double last_reward = 0;
  double running_reward = 0;
  double mean_length = 0;  ///< mean length of the last 100 runs

  [[nodiscard]] double env_steps_per_s() const { return static_cast<double>(env_steps) / seconds; }
};

/// The record of the episode that `progress` added last; its seconds are not set.
EpisodeRecord make_record(const TrainingProgress& progress, const std::vector<Rollout>& rollouts);

/// Shows the training on standard output, and notices on standard error. On a terminal the live
/// line is always the last one and changes in place. Otherwise it is a new line each second.
class ProgressDisplay {
 public:
  /// `mode` must not be automatic.
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
  std::string line_;       // the line on the terminal, without line end
  std::string unprinted_;  // the latest line, if there is no terminal
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace batchrpc_examples
