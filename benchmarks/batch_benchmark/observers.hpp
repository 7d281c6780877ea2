#pragma once

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "batch_benchmark/report.hpp"
#include "common/process.hpp"

namespace batch_benchmark {

/// The observers' measurements within the seconds of a sample.
struct Sample {
  double rows_per_s = 0;
  std::vector<double> us{};  ///< of each call that began and ended within them
  double cpu_us = 0;         ///< CPU time of this process per call
};

/// Processes that call this one in closed loops. They are started once for all samples. Only one
/// thread may use this object.
class Observers {
 public:
  /// Starts the processes and this process's node, and waits until all can be called. Throws
  /// batchrpc::Interrupted, and std::runtime_error if a process ends.
  Observers(int count, const Run& run);
  ~Observers();
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

  /// The node that the observers call.
  [[nodiscard]] const batchrpc::Node& node() const { return node_; }
  /// The names of the first `count` observers.
  [[nodiscard]] std::vector<std::string> names(int count) const;

  /// Lets the first `count` observers call `function`, an std::int64_t(at::Tensor) of this node, in
  /// a loop: first to warm up, then for `seconds`. `at_end` runs afterwards and must make the
  /// remaining calls end.
  Sample measure(int count, const std::string& function, const std::function<void()>& at_end);

 private:
  void wait_until_ready(const std::string& name);
  void check();
  void sleep_until(std::chrono::steady_clock::time_point time);

  const Run& run_;
  batchrpc::Node node_;
  std::vector<batchrpc_examples::ChildProcess> processes_;
};

/// Runs an observer in its own process, until it is ended.
int run_observer(const Options& options);

}  // namespace batch_benchmark
