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

/// Options of an EnvWorker.
struct EnvWorkerOptions {
  /// The name by which the driver finds it (VectorEnvOptions::service). A node may have several.
  std::string service = "envs";
  /// The lanes that step the environments; null: one thread. A driver's environments are divided
  /// evenly among the lanes, and each lane steps its group of them.
  std::shared_ptr<Lanes> lanes{};
  /// The most environments that a driver may ask for, over all buffers.
  std::size_t max_envs = 65536;
  /// The policy for rollouts; null: the driver chooses all actions.
  std::shared_ptr<WorkerPolicy> policy{};
};

/// The worker's end of a VectorEnv: it makes and steps environments for a driver, on threads of its
/// own. It serves one driver at a time. A driver that opens it gets fresh environments, and the
/// previous driver's steps in flight fail. Fresh environments are made once the previous ones are
/// destroyed. An environment that does not return from a step therefore keeps the worker from being
/// opened; drivers retry.
///
///     batchrpc::Node node({.name = "worker1", …});
///     const auto make = [] { return std::make_unique<CartPole>(); };
///     batchrpc::EnvWorker worker(node, batchrpc::group_of(make));
///
/// If an environment throws, that step fails at the driver, which then counts the worker as lost.
/// The node must outlive the worker. The destructor waits until no environment is being stepped.
class BATCHRPC_EXPORT EnvWorker {
 public:
  /// Throws InvalidArgument if the service is already exposed, or for options out of range; then
  /// nothing is exposed.
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
