#pragma once

#include <batchrpc/batchrpc.hpp>
#include <batchrpc/torch/policy.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "policy_benchmark/report.hpp"

namespace policy_benchmark {

/// What clients saw of a policy.
struct Served {
  double rows_per_s = 0;
  double p50_us = 0;  ///< of a call
  double p99_us = 0;
  double mean_batch = 0;
};

/// Processes that call this one in closed loops. They are started once, for all samples with one
/// number of LibTorch's threads. One thread uses it.
class Clients {
 public:
  /// Starts them and this process's node, and waits until all can be called. Throws Interrupted,
  /// and std::runtime_error when one ends.
  explicit Clients(const Run& run);
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  /// Serves the policy in full batches, two of which are always under way: one runs, while the
  /// other's rows are coming.
  Served measure(const std::shared_ptr<batchrpc::Policy>& policy, int batch);

 private:
  void wait_until_ready(const std::string& name);
  void check();

  const Run& run_;
  batchrpc::Node node_;
  std::vector<batchrpc_examples::ChildProcess> processes_;
};

/// Is a client, in a process of its own, until somebody ends it.
int run_client(const Options& options);

}  // namespace policy_benchmark
