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

/// The processes that step environments, and the node of this one, rank 0, that drives them.
class Workers {
 public:
  /// Starts the processes unless the options say that they are started by somebody else
  /// (PpoOptions::rank). To be made before this process has threads. Throws as make_policy() where
  /// workers would not have theirs.
  explicit Workers(const PpoOptions& options);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Waits for all workers; see VectorEnv. Once; the environments outlive neither this nor the
  /// options. Throws batchrpc::InvalidArgument when they are others than the options name.
  [[nodiscard]] batchrpc::VectorEnv& envs();

  /// Calls `notice` with the changes of workers since the last time.
  void notify_changes(const std::function<void(const std::string&)>& notice);

 private:
  const PpoOptions& options_;
  std::vector<ChildProcess> children_;
  std::optional<batchrpc::Node> node_;
  std::optional<batchrpc::VectorEnv> envs_;
  std::vector<batchrpc::VectorEnv::WorkerState> told_;
};

/// A line for each worker that was lost, has come back, or was refused between two looks at them;
/// before the first one there is none.
[[nodiscard]] std::vector<std::string> worker_changes(
    const std::vector<batchrpc::VectorEnv::WorkerState>& before,
    const std::vector<batchrpc::VectorEnv::WorkerState>& now);

/// What the process of worker `rank`, from 1, does until the agent ends or is lost.
void run_worker(const PpoOptions& options, int rank);

}  // namespace batchrpc_examples::ppo
