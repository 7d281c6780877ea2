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

/// An observer's measurements of an episode; sent to the coordinator.
struct ObserverEpisode {
  at::Tensor rewards{};             ///< float [steps]
  std::vector<double> latencies{};  ///< seconds of each step, from request to reply
  /// When the first reply arrived, in nanoseconds of this host's steady clock; 0: no reply yet.
  std::int64_t first_action_ns = 0;
  std::string failure{};  ///< why it ended early; empty if it did not
};

/// The observer: sends random states to its agent and waits for actions.
class Observer {
 public:
  /// `index` counts from 0.
  Observer(const batchrpc::Node& node, const Setting& setting, int index);

  /// Runs an episode on the threads that complete its calls. Ends early if a call fails or stop()
  /// was called.
  batchrpc::Future<ObserverEpisode> run_episode(std::int32_t steps);

  /// Ends the current episode and all later ones after their current step. Any thread may call it.
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
