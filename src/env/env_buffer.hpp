#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/env/lanes.hpp"
#include "batchrpc/env/worker_policy.hpp"
#include "batchrpc/future/future.hpp"
#include "env/activity.hpp"
#include "env/episodes.hpp"
#include "env/reply_size.hpp"
#include "env/step_messages.hpp"
#include "session/payload_memory.hpp"

namespace batchrpc::env {

/// The parts that all buffers of a worker share.
struct WorkerParts {
  Lanes* lanes = nullptr;  ///< outlives all activities
  std::shared_ptr<WorkerPolicy> policy{};
  std::shared_ptr<PayloadMemory> memory{};  ///< the node's
  MessageLimits limits{};                   ///< the node's
  std::shared_ptr<Activity> activity = std::make_shared<Activity>();
};

/// The environments that one message steps: one group for each lane. Thread-safe. It takes one step
/// at a time and refuses a second one.
class EnvBuffer : public std::enable_shared_from_this<EnvBuffer> {
 public:
  /// `groups` has one for each lane, all of one size and spec. Throws InvalidArgument if the
  /// results of one step are more than a message takes.
  EnvBuffer(std::size_t index, std::vector<std::unique_ptr<Episodes>> groups, WorkerParts parts);

  /// Errors are in the futures.
  /// @{
  [[nodiscard]] Future<StepReply> reset(std::optional<std::uint64_t> seed);
  [[nodiscard]] Future<StepReply> step(std::uint32_t steps, Bytes actions);
  /// @}

  /// The environments are no longer needed: a round in progress stops after its current step.
  void end() noexcept { ended_ = true; }
  /// Expires when the environments have been destroyed.
  [[nodiscard]] std::weak_ptr<const void> presence() const noexcept { return presence_; }

 private:
  class Turn;
  class Round;

  Future<StepReply> start(std::shared_ptr<Round> round);
  // Only the holder of the Turn calls these:
  void require_begun() const;
  void require_step(std::uint32_t steps, const Bytes& actions) const;
  void require_actions(std::span<const std::byte> actions) const;

  const std::shared_ptr<const void> presence_ = std::make_shared<char>();  // destroyed last
  const std::size_t index_;
  const std::vector<std::unique_ptr<Episodes>> groups_;
  const WorkerParts parts_;
  const EnvSpec spec_;
  const std::size_t group_size_;
  const std::size_t envs_;
  const std::size_t observation_bytes_;
  const std::size_t action_bytes_;
  const std::size_t most_steps_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> ended_{false};
  // Only the holder of the Turn uses these:
  bool begun_ = false;  // all environments were reset, and none has thrown since
  Bytes last_;          // the last observations [k, …], from which the policy acts next
};

}  // namespace batchrpc::env
