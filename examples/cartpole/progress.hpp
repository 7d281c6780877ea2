#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "cartpole_observer/returns.hpp"

namespace batchrpc_examples {

/// The progress of the training. Fed with the rollouts of one episode of the agent at a time.
///
/// "Solved" is Gymnasium's criterion for CartPole-v1: the mean length of the last 100 runs of the
/// environment is at least 475. Only runs that ended by themselves or by the 500-step limit count.
/// A run that the end of an agent's episode cut does not show its length.
class TrainingProgress {
 public:
  static constexpr std::size_t kWindow = 100;

  /// Adds the rollouts of the observers that finished this episode. Without any, only the number of
  /// episodes changes.
  void add_episode(const std::vector<Rollout>& rollouts);

  [[nodiscard]] int episodes() const { return episodes_; }

  /// The mean length of the observers' first runs in the last episode.
  [[nodiscard]] double last_reward() const { return last_reward_; }

  /// Becomes half the last reward plus half its old value after each episode; 0 at first.
  [[nodiscard]] double running_reward() const { return running_reward_; }

  /// The mean length of the last `kWindow` finished runs, or of all if there are fewer; 0 at first.
  [[nodiscard]] double mean_length() const;

  [[nodiscard]] bool solved() const;

  /// A line about the last episode: `Episode 0  Last reward: 23.00  Average reward: 11.50`.
  [[nodiscard]] std::string line() const;

 private:
  std::deque<int> window_;  // lengths of the last kWindow finished runs
  double last_reward_ = 0;
  double running_reward_ = 0;
  int episodes_ = 0;
};

}  // namespace batchrpc_examples
