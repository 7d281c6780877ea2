#pragma once

#include <ATen/core/Tensor.h>

#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rl_benchmark/policy.hpp"
#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// What an agent has measured in an episode; travels to the coordinator.
struct AgentEpisode {
  /// Of each run of the policy, in seconds: from the arrival of the first of its requests (without
  /// batches: from where its function begins) until an action is selected for all of them.
  std::vector<double> latencies{};
  std::vector<std::int32_t> rows{};  ///< requests in each of them
  std::int64_t kept = 0;             ///< log-probabilities that it had kept
  std::int64_t rewards = 0;          ///< that it has got
  std::int64_t private_memory = 0;   ///< of its process, at the end of the episode, in bytes
  std::int64_t resident_memory = 0;  ///< the same with what it shares with others
  std::int32_t threads = 0;          ///< of its process
};

/// Lives in an agent's process: selects actions, and keeps what learning would need until the
/// episode's end. Thread-safe.
class Agent {
 public:
  explicit Agent(const Setting& setting) : policy_(setting) {}

  /// An action for a state float [state_size...] of one observer.
  std::int64_t select_action(std::int32_t observer, const at::Tensor& state);

  /// Actions int64 [B] for states float [B, state_size...] and the observers that they are of.
  at::Tensor select_actions(const std::vector<std::int32_t>& observers, const at::Tensor& states,
                            const batchrpc::BatchInfo& batch);

  /// Takes all rewards of its observers, float [steps] of each, forgets them and what it has kept,
  /// and gives what it has measured since the last time.
  AgentEpisode finish_episode(std::vector<at::Tensor> rewards);

 private:
  /// Log-probabilities [B] of requests, and whose they are.
  struct Kept {
    std::vector<std::int32_t> observers;
    at::Tensor log_probs;
  };
  void keep(Kept kept, batchrpc::TimePoint first_arrival);

  Policy policy_;
  std::mutex mutex_;
  std::vector<Kept> kept_;
  AgentEpisode measured_;
};

/// Has the node answer its observers, named, and the coordinator.
void expose_agent(const batchrpc::Node& node, const std::shared_ptr<Agent>& agent,
                  const Setting& setting, const std::vector<std::string>& observers);

}  // namespace rl_benchmark
