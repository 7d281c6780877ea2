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

/// An agent's measurements of an episode; sent to the coordinator.
struct AgentEpisode {
  /// Seconds of each run of the policy: from the arrival of its first request (without batches:
  /// from the start of the function) until an action is selected for all of them.
  std::vector<double> latencies{};
  std::vector<std::int32_t> rows{};  ///< requests in each run
  std::int64_t kept = 0;             ///< log-probabilities that it kept
  std::int64_t rewards = 0;          ///< rewards that it received
  std::int64_t private_memory = 0;   ///< bytes of its process at the end of the episode
  std::int64_t resident_memory = 0;  ///< the same, including memory shared with others
  std::int32_t threads = 0;          ///< of its process
};

/// The agent: selects actions, and keeps what learning would need until the end of the episode.
/// Thread-safe.
class Agent {
 public:
  explicit Agent(const Setting& setting) : policy_(setting) {}

  /// Selects an action for a state float [state_size...] of one observer.
  std::int64_t select_action(std::int32_t observer, const at::Tensor& state);

  /// Selects actions int64 [B] for states float [B, state_size...] of `observers`.
  at::Tensor select_actions(const std::vector<std::int32_t>& observers, const at::Tensor& states,
                            const batchrpc::BatchInfo& batch);

  /// Takes all rewards of its observers, float [steps] each. Drops them and everything kept, and
  /// returns the measurements since the last call.
  AgentEpisode finish_episode(std::vector<at::Tensor> rewards);

 private:
  /// The log-probabilities [B] of requests, and their observers.
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

/// Exposes the agent's functions to its observers, by name, and to the coordinator.
void expose_agent(const batchrpc::Node& node, const std::shared_ptr<Agent>& agent,
                  const Setting& setting, const std::vector<std::string>& observers);

}  // namespace rl_benchmark
