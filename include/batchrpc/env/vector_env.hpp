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

/// Of a VectorEnv.
struct VectorEnvOptions {
  /// Names of the nodes that have an EnvWorker; each once.
  std::vector<std::string> workers{};
  std::string service = "envs";  ///< EnvWorkerOptions::service
  /// How many environments of a worker are stepped by one message.
  std::size_t envs_per_worker = 1;
  /// Each worker has so many times envs_per_worker environments, in as many groups: it steps one
  /// while the actions of another are computed. 1 to WorkerPolicy::kMostBuffers, 16.
  std::size_t buffers = 1;
  Autoreset autoreset = Autoreset::next_step;  ///< what follows the end of an episode
  /// Environment i is seeded with seed + i, as Gymnasium does it.
  std::uint64_t seed = 0;
  /// A worker that has not answered a step, or taken weights (push_policy()), in this time counts
  /// as lost. max(): it is waited for.
  Duration step_timeout = Duration::max();
  /// How long the constructor waits for each worker to be there; and how long one that was lost,
  /// and is there again, may take to make its environments.
  Duration open_timeout = std::chrono::seconds(60);
};

/// Environments in other processes, stepped in batches: one message a worker and step, however many
/// environments it has.
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
/// The loop is the same with any number of buffers: with two, step_wait() gives one half of the
/// environments while the other half is stepped. step_wait() waits for all workers, and row i is
/// always the same environment; recv() does not let a slow worker hold up the others.
///
/// A worker that is lost (its process has ended, an environment has thrown, it has not answered in
/// time) takes its rows along: they are not valid in step_wait()'s batches, and recv() gives none.
/// When an EnvWorker of its name is there again, however much later, it gets fresh environments
/// with the numbers of the old ones but other seeds, and its rows come again, with `started` set.
/// Steps of it that were under way are lost, and batches from before step nothing of it. (One whose
/// environment has thrown, that has refused what it was sent, or whose environments are not as the
/// others', stays lost until another process takes its place: WorkerState.)
///
/// Of two VectorEnvs over one worker the one that was made last has it. One that is destroyed
/// leaves its workers' environments to whoever comes next.
///
/// Large observations are received where the batch has them. Used by one thread at a time; waiting
/// drives the node as any future does. The node outlives it.
class BATCHRPC_EXPORT VectorEnv {
 public:
  /// Opens the workers, and returns when they have made their environments. Throws InvalidArgument
  /// for options out of range and for workers whose environments differ from each other's,
  /// RemoteError for what the program's code throws at a worker, TimedOut when a worker is not
  /// there in time, and what else its call ends in.
  VectorEnv(const Node& node, VectorEnvOptions options);
  VectorEnv(VectorEnv&&) = delete;
  VectorEnv& operator=(VectorEnv&&) = delete;
  ~VectorEnv();

  /// What all environments take and give.
  [[nodiscard]] const EnvSpec& spec() const noexcept;
  /// Numbers that the workers' policies say of each step (WorkerPolicy::extras); 0 where these say
  /// none, or the workers have no policy.
  [[nodiscard]] std::size_t extras() const noexcept;
  /// All environments, of all workers and buffers.
  [[nodiscard]] std::size_t size() const noexcept;
  /// The most steps of one message: what comes of them comes together, in a frame and payloads of
  /// limited size (NodeOptions).
  [[nodiscard]] std::size_t max_steps() const noexcept;

  /// Begins an episode in every environment, when what is under way has ended: seeded anew, with
  /// `seed` + i, if there is one; the first time with that of the options, if there is none.
  /// step_wait() or recv() gives what comes of it.
  void reset_async(std::optional<std::uint64_t> seed = std::nullopt);
  /// The same, and the first step_wait().
  [[nodiscard]] EnvBatch reset(std::optional<std::uint64_t> seed = std::nullopt);

  /// Steps the environments of `batch`, which step_wait() or recv() gave last: `actions` [G, k, …]
  /// for its groups, or [G, steps, k, …] where the actions of several steps are known. They are
  /// copied. Nobody looks at those of rows that are not valid, and at the first ones of
  /// environments that the step resets (Autoreset::next_step). Of a batch without groups nothing is
  /// sent. Throws InvalidArgument for actions of another size, or not allowed by the spec (numbers
  /// that are NaN among them), for more steps than one message takes, for a batch of another
  /// VectorEnv, and for groups that are under way already, or have been stepped or reset since that
  /// batch: nothing is sent then.
  void step_async(const EnvBatch& batch, std::span<const std::byte> actions, std::size_t steps = 1);
  /// The same for some of its groups, by EnvBatch::sources.
  void step_async(std::span<const EnvBatch::Group> groups, std::span<const std::byte> actions,
                  std::size_t steps = 1);
  /// Takes so many steps by the policies of the workers. Throws as step_async(), and
  /// InvalidArgument when they have none.
  /// @{
  void rollout_async(const EnvBatch& batch, std::size_t steps);
  void rollout_async(std::span<const EnvBatch::Group> groups, std::size_t steps);
  /// @}

  /// Groups that are under way, or whose answers are here: 0, and recv() would throw. Those of a
  /// worker that is lost are not.
  [[nodiscard]] std::size_t under_way() const;

  /// What came of the buffer that was sent first: G is the number of workers, in their order. Waits
  /// until none of its groups is under way. Throws InvalidArgument when nothing is under way,
  /// PeerLost, which says why, when all workers are lost.
  [[nodiscard]] EnvBatch step_wait();
  /// What is there, of at least so many groups, or of all that are under way if those are fewer:
  /// in the order in which they came. No group, when those that were under way have been lost
  /// meanwhile, and other workers live: step_async() then sends nothing. Throws as step_wait().
  [[nodiscard]] EnvBatch recv(std::size_t min_groups = 1);

  /// Sends weights to the policies of all workers; steps that are under way may take them or not. A
  /// worker that does not take them is lost, one that refuses them until it is replaced, and the
  /// others go on. Ready when all live workers have them; fails with PeerLost, which says why, when
  /// none is live. A worker that joins again has the last ones before its environments begin. Of
  /// two pushes a worker ends with the higher version, in whatever order they arrive. Throws
  /// InvalidArgument for a version below that of the push before, and when the workers have none.
  [[nodiscard]] Future<void> push_policy(Bytes weights, std::uint64_t version);

  /// What has become of a worker.
  struct WorkerState {
    std::string name{};        ///< as in the options
    bool live = true;          ///< its environments can be stepped
    bool opening = false;      ///< it is not live, but may yet be; neither: not unless it is
                               ///< replaced by another process of its name
    std::size_t losses = 0;    ///< how often it was lost
    std::size_t refusals = 0;  ///< how often a process of its name was not taken
    std::string last_loss{};   ///< why, the last time: a sentence that begins with the name
  };
  /// In the order of the options. Thread-safe.
  [[nodiscard]] std::vector<WorkerState> workers() const;
  /// Waits, for so long at most, until at least so many workers are live, those among them that
  /// take the places of others. Returns whether they are. Throws InvalidArgument for more than
  /// there are.
  bool wait_for_workers(std::size_t live, Duration timeout);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace batchrpc
