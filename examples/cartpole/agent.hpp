#pragma once

#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cartpole/reinforce.hpp"
#include "cartpole_observer/returns.hpp"
#include "cartpole_observer/state_row.hpp"
#include "common/interrupt.hpp"

namespace batchrpc_examples {

struct AgentOptions {
  ReinforceOptions learning{};
  bool batch = true;  ///< infer once for all observers, instead of once for each
};

/// The policy for several threads: an observer that was given up may still ask while we learn.
class Learner {
 public:
  explicit Learner(const ReinforceOptions& options) : learner_(options) {}

  std::vector<std::int32_t> select_actions(const std::vector<StateRow>& rows);
  void learn(const std::vector<Rollout>& rollouts);
  /// Of the policy's parameters: equal for equal bits.
  [[nodiscard]] std::uint64_t policy_hash();

 private:
  std::mutex mutex_;
  ReinforceAgent learner_;
};

/// Lives in the agent's process: has the observers play, answers them, and learns from what they
/// report. One thread uses it; the observers' requests are answered on the node's.
class Agent {
 public:
  /// Returns when all observers can be called. `notice` takes a line for people when one is lost.
  /// All three outlive it.
  Agent(const batchrpc::Node& node, const AgentOptions& options,
        std::function<void(const std::string&)> notice, const InterruptFlag& interrupts);

  /// Has every observer play an episode, all at the same time, and waits for them. Observers that
  /// fail are left out from then on. Throws std::runtime_error when none is left, and Interrupted.
  std::vector<Rollout> run_episode();

  /// Learns from what run_episode() gave.
  void finish_episode(const std::vector<Rollout>& rollouts) { learner_->learn(rollouts); }

  /// Tells the observers that there is nothing more to do.
  void dismiss_observers();

  [[nodiscard]] const std::vector<std::string>& lost_observers() const { return lost_; }
  [[nodiscard]] std::uint64_t policy_hash() { return learner_->policy_hash(); }

 private:
  void wait_until_ready(const std::string& observer) const;
  void drop_observer(const std::string& observer, const batchrpc::Result<Rollout>& failure);

  const batchrpc::Node& node_;
  const std::int32_t steps_;
  const std::function<void(const std::string&)> notice_;
  const InterruptFlag& interrupts_;
  const std::shared_ptr<Learner> learner_;  // shared with what the node exposes
  std::vector<std::string> observers_;      // that play
  std::vector<std::string> lost_;
};

}  // namespace batchrpc_examples
