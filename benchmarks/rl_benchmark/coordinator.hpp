#pragma once

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "rl_benchmark/agent.hpp"
#include "rl_benchmark/observer.hpp"
#include "rl_benchmark/record.hpp"
#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// Runs episodes and collects the measurements of all processes. Only one thread may use it.
class Coordinator {
 public:
  /// `node` is the node of rank 0; all others must have joined.
  Coordinator(const Setting& setting, batchrpc::Node node,
              const batchrpc::InterruptFlag& interrupts, bool progress);

  /// Runs all episodes, or fewer if a process is lost or a signal arrives. `started` is when the
  /// run's processes were started; with it the record tells when the first action arrived.
  RunRecord run(std::optional<std::chrono::steady_clock::time_point> started);

  /// Tells the others to end; `more`: another run follows.
  void dismiss(bool more);

 private:
  class Losses;

  std::vector<batchrpc::Result<ObserverEpisode>> observe();
  void finish_episode(std::vector<batchrpc::Result<ObserverEpisode>>& results,
                      EpisodeRecord& episode);
  void stop_others();
  [[nodiscard]] std::string reason_to_stop() const;
  void end_early(const std::string& why);

  const Setting setting_;
  const batchrpc::InterruptFlag& interrupts_;
  const bool progress_;
  const std::vector<std::string> agents_;
  const std::vector<std::string> observers_;
  std::shared_ptr<Losses> losses_;  // shared with the node's callbacks
  batchrpc::Node node_;
  RunRecord record_;
};

}  // namespace rl_benchmark
