#pragma once

#include <batchrpc/env.hpp>
#include <batchrpc/node/node.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "ppo/options.hpp"

namespace batchrpc_examples::ppo {

/// The processes that step environments, and this process's node, rank 0, which drives them.
class Workers {
 public:
  /// Starts the processes, unless the options say that they are started by hand (PpoOptions::rank).
  /// Create it before this process has threads. Throws as make_policy() does if workers could not
  /// create their policy.
  explicit Workers(const PpoOptions& options);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Waits for all workers; see VectorEnv. Call it once. The environments must not outlive this
  /// object or the options. Throws batchrpc::InvalidArgument if they differ from those that the
  /// options name.
  [[nodiscard]] batchrpc::VectorEnv& envs();

  /// Passes the changes of workers since the last call to `notice`.
  void notify_changes(const std::function<void(const std::string&)>& notice);

 private:
  const PpoOptions& options_;
  std::vector<ChildProcess> children_;
  std::optional<batchrpc::Node> node_;
  std::optional<batchrpc::VectorEnv> envs_;
  std::vector<batchrpc::VectorEnv::WorkerState> told_;
};

/// A line for each worker that was lost, has come back, or was refused between two snapshots.
/// Before the first one there were no workers.
[[nodiscard]] std::vector<std::string> worker_changes(
    const std::vector<batchrpc::VectorEnv::WorkerState>& before,
    const std::vector<batchrpc::VectorEnv::WorkerState>& now);

/// Runs the process of worker `rank`, from 1 on, until the agent ends or is lost.
void run_worker(const PpoOptions& options, int rank);

}  // namespace batchrpc_examples::ppo
