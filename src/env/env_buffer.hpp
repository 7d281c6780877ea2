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

/// What the buffers of a worker share.
struct WorkerParts {
  Lanes* lanes = nullptr;  ///< outlives all that goes on
  std::shared_ptr<WorkerPolicy> policy{};
  std::shared_ptr<PayloadMemory> memory{};  ///< the node's
  MessageLimits limits{};                   ///< the node's
  std::shared_ptr<Activity> activity = std::make_shared<Activity>();
};

/// The environments that one message steps: a group a lane. Thread-safe; one step at a time, a
/// second one is refused.
class EnvBuffer : public std::enable_shared_from_this<EnvBuffer> {
 public:
  /// A group a lane, all of one size and spec. Throws InvalidArgument when what comes of a step is
  /// more than a message takes.
  EnvBuffer(std::size_t index, std::vector<std::unique_ptr<Episodes>> groups, WorkerParts parts);

  /// What goes wrong is in the futures.
  /// @{
  [[nodiscard]] Future<StepReply> reset(std::optional<std::uint64_t> seed);
  [[nodiscard]] Future<StepReply> step(std::uint32_t steps, Bytes actions);
  /// @}

  /// Nobody waits for these environments any more: what is under way ends when a step does.
  void end() noexcept { ended_ = true; }
  /// Expires when its environments have been destroyed.
  [[nodiscard]] std::weak_ptr<const void> presence() const noexcept { return presence_; }

 private:
  class Turn;
  class Round;

  Future<StepReply> start(std::shared_ptr<Round> round);
  // By who is busy:
  void require_begun() const;
  void require_step(std::uint32_t steps, const Bytes& actions) const;
  void require_actions(std::span<const std::byte> actions) const;

  const std::shared_ptr<const void> presence_ = std::make_shared<char>();  // outlives what follows
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
  // By who is busy:
  bool begun_ = false;  // all environments have been reset, and none has thrown since
  Bytes last_;          // what the policy acts by next: the last observations, [k, …]
};

}  // namespace batchrpc::env
