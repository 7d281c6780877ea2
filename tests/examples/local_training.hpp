#pragma once

#include <cstdint>

#include "cartpole/reinforce.hpp"

namespace batchrpc_examples {

struct LocalTraining {
  ReinforceOptions agent{.observers = 10};
  double discount = 0.99;
  int most_episodes = 200;
};

struct LocalTrainingResult {
  bool solved = false;
  int episodes = 0;  ///< of the agent's: one update each
  double running_reward = 0;
  double sampling_seconds = 0;
  double update_seconds = 0;
};

/// Trains CartPole in one process and thread, without a call: every step asks the agent once for
/// the actions of all environments. What the distributed example does less the distribution.
LocalTrainingResult train_locally(const LocalTraining& training);

}  // namespace batchrpc_examples
