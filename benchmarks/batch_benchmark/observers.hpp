#pragma once

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "batch_benchmark/report.hpp"
#include "common/process.hpp"

namespace batch_benchmark {

/// What observers saw within the seconds of a sample.
struct Sample {
  double rows_per_s = 0;
  std::vector<double> us{};  ///< of each call that began and ended within them
  double cpu_us = 0;         ///< CPU time of this process, a call
};

/// Processes that call this one in a closed loop. They are started once, for all samples. One
/// thread uses it.
class Observers {
 public:
  /// Starts them and this process's node, and waits until all can be called. Throws Interrupted,
  /// and std::runtime_error when one ends.
  Observers(int count, const Run& run);
  ~Observers();
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

  /// The node that they call.
  [[nodiscard]] const batchrpc::Node& node() const { return node_; }
  /// Of the first so many.
  [[nodiscard]] std::vector<std::string> names(int count) const;

  /// Has the first `count` observers call `function`, an std::int64_t(at::Tensor) of our node,
  /// again and again: for a while to warm up, then for `seconds`. `at_end` runs when these have
  /// passed, and sees to it that calls which are still under way end.
  Sample measure(int count, const std::string& function, const std::function<void()>& at_end);

 private:
  void wait_until_ready(const std::string& name);
  void check();
  void sleep_until(std::chrono::steady_clock::time_point time);

  const Run& run_;
  batchrpc::Node node_;
  std::vector<batchrpc_examples::ChildProcess> processes_;
};

/// Is an observer, in a process of its own, until somebody ends it.
int run_observer(const Options& options);

}  // namespace batch_benchmark
