#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/env/env_group.hpp"
#include "batchrpc/env/lanes.hpp"
#include "batchrpc/env/worker_policy.hpp"
#include "batchrpc/node/node.hpp"

namespace batchrpc {

/// Of an EnvWorker.
struct EnvWorkerOptions {
  /// Under which the driver finds it (VectorEnvOptions::service): a node may have several.
  std::string service = "envs";
  /// What steps the environments; null: a thread. Those that a driver asks for are divided evenly
  /// among the lanes, and each lane steps its group of them.
  std::shared_ptr<Lanes> lanes{};
  /// The most environments that a driver may ask for, all buffers together; there are never more.
  std::size_t max_envs = 65536;
  /// For rollouts; null: the driver chooses all actions.
  std::shared_ptr<WorkerPolicy> policy{};
};

/// The worker's end of a VectorEnv: makes environments when a driver asks for them, and steps them
/// when it says so, on threads of its own. One driver at a time: a driver that opens it anew, or
/// another one, gets fresh environments, and what was under way fails for the one before. They are
/// made when those before are gone: one that does not return from a step keeps the worker from
/// being opened, for which drivers then ask again.
///
///     batchrpc::Node node({.name = "worker1", …});
///     const auto make = [] { return std::make_unique<CartPole>(); };
///     batchrpc::EnvWorker worker(node, batchrpc::group_of(make));
///
/// What an environment throws fails that step at the driver, which then counts the worker as lost.
/// The node outlives it. Its destructor waits until no environment is being stepped.
class BATCHRPC_EXPORT EnvWorker {
 public:
  /// Throws InvalidArgument when the service is exposed already, and for options out of range:
  /// nothing is exposed then.
  EnvWorker(const Node& node, EnvGroupFactory make, EnvWorkerOptions options = {});
  EnvWorker(EnvWorker&&) = delete;
  EnvWorker& operator=(EnvWorker&&) = delete;
  ~EnvWorker();

 private:
  class State;
  void unexpose() noexcept;

  const Node& node_;
  const std::string service_;
  std::vector<std::string> exposed_;
  const std::shared_ptr<Lanes> lanes_;  // ends on the thread that destroys this
  std::shared_ptr<State> state_;
};

}  // namespace batchrpc
