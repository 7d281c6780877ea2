#pragma once

#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "cartpole/reinforce.hpp"
#include "cartpole_observer/returns.hpp"
#include "cartpole_observer/state_row.hpp"

namespace batchrpc_examples {

struct AgentOptions {
  ReinforceOptions learning{};
  bool batch = true;  ///< infer once for all observers, instead of once for each
};

/// The policy, for use by several threads: a lost observer may still ask while the agent learns.
class Learner {
 public:
  explicit Learner(const ReinforceOptions& options) : learner_(options) {}

  std::vector<std::int32_t> select_actions(const std::vector<StateRow>& rows);
  void learn(const std::vector<Rollout>& rollouts);
  /// A hash of the policy's parameters, equal for equal bits.
  [[nodiscard]] std::uint64_t policy_hash();

 private:
  std::mutex mutex_;
  ReinforceAgent learner_;
};

/// The agent: lets the observers play, answers them, and learns from their reports. One thread uses
/// it; the node's threads answer the observers.
class Agent {
 public:
  /// Returns when all observers can be called. `notice` takes a line of text when an observer is
  /// lost. `node`, `notice` and `interrupts` must outlive it.
  Agent(const batchrpc::Node& node, const AgentOptions& options,
        std::function<void(const std::string&)> notice, const batchrpc::InterruptFlag& interrupts);

  /// Lets every observer play an episode, all at the same time, and waits for them. Observers that
  /// fail are left out from then on. Throws std::runtime_error if none is left, and
  /// batchrpc::Interrupted.
  std::vector<Rollout> run_episode();

  /// Learns from the result of run_episode().
  void finish_episode(const std::vector<Rollout>& rollouts) { learner_->learn(rollouts); }

  /// Tells the observers to finish.
  void dismiss_observers();

  [[nodiscard]] const std::vector<std::string>& lost_observers() const { return lost_; }
  [[nodiscard]] std::uint64_t policy_hash() { return learner_->policy_hash(); }

 private:
  void wait_until_ready(const std::string& observer) const;
  void drop_observer(const std::string& observer, const batchrpc::Result<Rollout>& failure);

  const batchrpc::Node& node_;
  const std::int32_t steps_;
  const std::function<void(const std::string&)> notice_;
  const batchrpc::InterruptFlag& interrupts_;
  const std::shared_ptr<Learner> learner_;  // shared with the exposed functions
  std::vector<std::string> observers_;      // the observers that still play
  std::vector<std::string> lost_;
};

}  // namespace batchrpc_examples
