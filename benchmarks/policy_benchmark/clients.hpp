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

/// The clients' measurements of a policy.
struct Served {
  double rows_per_s = 0;
  double p50_us = 0;  ///< per call
  double p99_us = 0;
  double mean_batch = 0;
};

/// Processes that call this one in closed loops. They are started once for all samples with one
/// number of LibTorch threads. Only one thread may use this object.
class Clients {
 public:
  /// Starts the processes and this process's node, and waits until all can be called. Throws
  /// batchrpc::Interrupted, and std::runtime_error if a process ends.
  explicit Clients(const Run& run);
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  /// Serves the policy in full batches. Two batches are always in flight: one runs while the
  /// other's rows arrive.
  Served measure(const std::shared_ptr<batchrpc::Policy>& policy, int batch);

 private:
  void wait_until_ready(const std::string& name);
  void check();

  const Run& run_;
  batchrpc::Node node_;
  std::vector<batchrpc_examples::ChildProcess> processes_;
};

/// Runs a client in its own process, until it is ended.
int run_client(const Options& options);

}  // namespace policy_benchmark
