#pragma once

#include <batchrpc/node/node.hpp>
#include <optional>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "common/process.hpp"
#include "env_benchmark/setting.hpp"
#include "env_benchmark/timed_group.hpp"

namespace env_benchmark {

/// The workers' processes, and this process as their driver.
class World {
 public:
  /// Create it before this process has threads. The setting must outlive it.
  World(const Setting& setting, StepTime time);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Drives the workers for the setting's time, after a warm-up. Throws batchrpc::Interrupted.
  [[nodiscard]] Measured drive(const Variant& variant,
                               const batchrpc::InterruptFlag& interrupts) const;
  /// Runs the same lanes without a driver, all workers at once. Returns steps per second.
  [[nodiscard]] double run_free() const;

 private:
  const Setting& setting_;
  std::vector<batchrpc_examples::ChildProcess> children_;
  std::optional<batchrpc::Node> node_;
};

}  // namespace env_benchmark
