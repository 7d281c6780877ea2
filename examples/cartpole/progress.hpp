#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "cartpole_observer/returns.hpp"

namespace batchrpc_examples {

/// How far the training has come. Fed with the rollouts of one episode of the agent's at a time.
///
/// Solved is Gymnasium's criterion for CartPole-v1: the mean length of the last 100 runs of the
/// environment is at least 475. Only runs that ended by themselves or by the 500-step limit count:
/// one cut by the end of an agent's episode tells nothing of its length.
class TrainingProgress {
 public:
  static constexpr std::size_t kWindow = 100;

  /// Takes the rollouts of the observers that finished this episode; with none of them only the
  /// number of episodes changes.
  void add_episode(const std::vector<Rollout>& rollouts);

  [[nodiscard]] int episodes() const { return episodes_; }

  /// Mean over the observers of their first run's length in the last episode.
  [[nodiscard]] double last_reward() const { return last_reward_; }

  /// After each episode half the last reward and half of what it was; 0 at first.
  [[nodiscard]] double running_reward() const { return running_reward_; }

  /// Mean length of the last `kWindow` finished runs, or of all when there are fewer; 0 at first.
  [[nodiscard]] double mean_length() const;

  [[nodiscard]] bool solved() const;

  /// `Episode 0  Last reward: 23.00  Average reward: 11.50`, of the last episode.
  [[nodiscard]] std::string line() const;

 private:
  std::deque<int> window_;  // lengths of the last finished runs, as many as kWindow
  double last_reward_ = 0;
  double running_reward_ = 0;
  int episodes_ = 0;
};

}  // namespace batchrpc_examples
