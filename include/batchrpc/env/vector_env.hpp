#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/env/autoreset.hpp"
#include "batchrpc/env/env_batch.hpp"
#include "batchrpc/node/node.hpp"

namespace batchrpc {

/// Options of a VectorEnv.
struct VectorEnvOptions {
  /// The names of the nodes that have an EnvWorker, each once.
  std::vector<std::string> workers{};
  std::string service = "envs";  ///< EnvWorkerOptions::service
  /// The number of a worker's environments that one message steps.
  std::size_t envs_per_worker = 1;
  /// The number of groups on each worker, each of envs_per_worker environments. A worker steps one
  /// group while the actions of another are computed. 1 to WorkerPolicy::kMostBuffers, 16.
  std::size_t buffers = 1;
  Autoreset autoreset = Autoreset::next_step;  ///< what follows the end of an episode
  /// Environment i is seeded with seed + i, as in Gymnasium.
  std::uint64_t seed = 0;
  /// A worker that does not answer a step, or take weights (push_policy()), in this time counts as
  /// lost. max(): no time-out.
  Duration step_timeout = kNoTimeout;
  /// How long the constructor waits for each worker, and how long a lost worker that is back may
  /// take to make its environments.
  Duration open_timeout = std::chrono::seconds(60);
};

/// Environments in other processes, stepped in batches. Each step takes one message for each
/// worker, however many environments the worker has.
///
///     batchrpc::VectorEnv envs(node, {.workers = {"worker1", "worker2"}, .envs_per_worker = 16,
///                                     .buffers = 2});
///     batchrpc::EnvBatch batch = envs.reset();
///     while (…) {
///       std::vector<std::int64_t> actions = choose(batch);
///       envs.step_async(batch, std::as_bytes(std::span(actions)));
///       batch = envs.step_wait();     // or: envs.recv(), of whichever workers are ready
///     }
///
/// The loop is the same with any number of buffers. With two, step_wait() gives one half of the
/// environments while the other half is stepped. step_wait() waits for all workers, and row i is
/// always the same environment; recv() does not let a slow worker delay the others.
///
/// A worker is lost when its process ends, an environment throws, or it does not answer in time.
/// Its rows are then not valid in step_wait()'s batches, and recv() omits them. When an EnvWorker
/// of its name is back, it gets fresh environments with the old numbers but other seeds, and its
/// rows return with `started` set. Its steps in flight are lost, and stepping an older batch skips
/// its environments. Some workers stay lost until another process takes their place (see
/// WorkerState): those with an environment that threw, that refused a request, or whose
/// environments differ from the others'.
///
/// If two VectorEnvs use one worker, the later one has it. A destroyed VectorEnv leaves its
/// workers' environments to the next driver.
///
/// Large observations are received directly into the batch's memory. Use it from one thread at a
/// time; waiting drives the node as any future does. The node must outlive it.
class BATCHRPC_EXPORT VectorEnv {
 public:
  /// Opens the workers, and returns when they have made their environments. Throws InvalidArgument
  /// for options out of range and for workers whose environments differ. Throws RemoteError if the
  /// program's code throws at a worker, and TimedOut if a worker is not there in time. Any other
  /// error of the opening call is thrown as it is.
  VectorEnv(const Node& node, VectorEnvOptions options);
  VectorEnv(VectorEnv&&) = delete;
  VectorEnv& operator=(VectorEnv&&) = delete;
  ~VectorEnv();

  /// The spec of all environments.
  [[nodiscard]] const EnvSpec& spec() const noexcept;
  /// The number of extra values that the workers' policies give for each step
  /// (WorkerPolicy::extras); 0 if they give none, or the workers have no policy.
  [[nodiscard]] std::size_t extras() const noexcept;
  /// The number of environments of all workers and buffers.
  [[nodiscard]] std::size_t size() const noexcept;
  /// The most steps of one message. The results of all its steps come in one reply, within the
  /// limits of frames and payloads (NodeOptions).
  [[nodiscard]] std::size_t max_steps() const noexcept;

  /// Begins an episode in every environment once its steps in flight have ended. With `seed`,
  /// environment i is seeded with `seed` + i; without, the first reset uses the options' seed.
  /// step_wait() or recv() returns the results.
  void reset_async(std::optional<std::uint64_t> seed = std::nullopt);
  /// Calls reset_async() and the first step_wait().
  [[nodiscard]] EnvBatch reset(std::optional<std::uint64_t> seed = std::nullopt);

  /// Steps the environments of `batch`, which must come from the last step_wait() or recv().
  /// `actions` [G, k, …] are for its groups, or [G, steps, k, …] if the actions of several steps
  /// are known; they are copied. Actions of rows that are not valid are ignored, as are the first
  /// ones of environments that the step resets (Autoreset::next_step). For a batch without groups
  /// nothing is sent.
  ///
  /// Throws InvalidArgument, and sends nothing, in these cases:
  /// - The actions have another size, or the spec does not allow them (NaN included).
  /// - There are more steps than one message takes.
  /// - The batch belongs to another VectorEnv.
  /// - A group is already being stepped, or was stepped or reset since that batch.
  void step_async(const EnvBatch& batch, std::span<const std::byte> actions, std::size_t steps = 1);
  /// Steps some of a batch's groups, given by EnvBatch::sources.
  void step_async(std::span<const EnvBatch::Group> groups, std::span<const std::byte> actions,
                  std::size_t steps = 1);
  /// Takes `steps` steps with the workers' policies. Throws as step_async(), and InvalidArgument if
  /// the workers have no policy.
  /// @{
  void rollout_async(const EnvBatch& batch, std::size_t steps);
  void rollout_async(std::span<const EnvBatch::Group> groups, std::size_t steps);
  /// @}

  /// The number of groups that are being stepped or have an answer waiting; with 0, recv() would
  /// throw. Groups of lost workers do not count.
  [[nodiscard]] std::size_t under_way() const;

  /// Returns the results of the buffer that was sent first; G is the number of workers, in their
  /// order. Waits until none of its groups is being stepped. Throws InvalidArgument if nothing was
  /// sent, and PeerLost with the reason if all workers are lost.
  [[nodiscard]] EnvBatch step_wait();
  /// Returns the groups that have answered, in order of arrival. Waits for at least `min_groups`,
  /// or for all that were sent if those are fewer. The batch has no groups if all of them were lost
  /// while other workers live; step_async() then sends nothing. Throws as step_wait().
  [[nodiscard]] EnvBatch recv(std::size_t min_groups = 1);

  /// Sends weights to the policies of all workers; steps in flight may use them or not. A worker
  /// that does not take them in time is lost, and one that refuses them is lost until it is
  /// replaced. The others continue. A worker that joins again gets the last weights before its
  /// environments begin. After two pushes a worker has the higher version, in whatever order they
  /// arrive.
  ///
  /// The future is ready when all live workers have the weights; it fails with PeerLost and the
  /// reason if none is live. Throws InvalidArgument for a version below the previous push's, and if
  /// the workers have no policy.
  [[nodiscard]] Future<void> push_policy(Bytes weights, std::uint64_t version);

  /// The state of a worker.
  struct WorkerState {
    std::string name{};      ///< as in the options
    bool live = true;        ///< its environments can be stepped
    bool opening = false;    ///< it is not live, but being opened; if neither, it stays lost until
                             ///< another process of its name replaces it
    std::size_t losses = 0;  ///< how often it was lost
    std::size_t refusals = 0;  ///< how often a process of its name was rejected
    std::string last_loss{};   ///< why, the last time; begins with the name
  };
  /// The workers' states, in the order of the options. Thread-safe.
  [[nodiscard]] std::vector<WorkerState> workers() const;
  /// Waits up to `timeout` until at least `live` workers are live; replacements count. Returns
  /// whether they are. Throws InvalidArgument for more than there are.
  bool wait_for_workers(std::size_t live, Duration timeout);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace batchrpc
