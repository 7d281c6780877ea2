#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// What an observer has measured in an episode; travels to the coordinator.
struct ObserverEpisode {
  at::Tensor rewards{};             ///< float [steps]
  std::vector<double> latencies{};  ///< of each step, in seconds: from request to reply
  /// When the first reply was there, in nanoseconds of this host's steady clock; 0: none was.
  std::int64_t first_action_ns = 0;
  std::string failure{};  ///< why it ended early; empty when it did not
};

/// Lives in an observer's process: sends random states to its agent, and waits for actions.
class Observer {
 public:
  /// `index` is counted from 0.
  Observer(const batchrpc::Node& node, const Setting& setting, int index);

  /// Runs an episode on whatever thread completes its calls. Ends early when a call fails, or
  /// stop() has been called.
  batchrpc::Future<ObserverEpisode> run_episode(std::int32_t steps);

  /// Has the episode under way, and all to come, end with the step that it is in. From any thread.
  void stop() { stopped_ = true; }

 private:
  const batchrpc::Node& node_;
  const std::vector<std::int64_t> state_size_;
  const std::int32_t index_;
  const std::string agent_;
  std::mt19937_64 random_;
  std::atomic<bool> stopped_{false};
};

}  // namespace rl_benchmark
