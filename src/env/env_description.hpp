#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "batchrpc/env/env.hpp"
#include "env/reply_size.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::env {

/// The properties that the environments of all workers share. The first worker to open sets them,
/// and the others must match. Not thread-safe; does not change once it is set.
class EnvDescription {
 public:
  explicit EnvDescription(std::size_t envs_per_worker) : shape_{.envs = envs_per_worker} {}

  /// Throws InvalidArgument unless the worker's environments match the others', and a step fits
  /// into a message.
  void accept(const std::string& worker, const OpenReply& reply, const MessageLimits& limits);
  /// Throws InvalidArgument unless a message takes `steps` steps.
  void require_steps(std::size_t steps) const;
  /// Throws InvalidArgument, naming the `caller`, unless the workers have a policy.
  void require_policy(const std::string& caller) const;

  /// Null before a worker has opened.
  [[nodiscard]] const std::shared_ptr<const EnvSpec>& spec() const noexcept { return spec_; }
  [[nodiscard]] const StepShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t most_steps() const noexcept { return most_steps_; }
  /// The size of one worker's observations.
  [[nodiscard]] std::size_t observation_bytes(std::size_t steps) const noexcept {
    return steps * shape_.envs * shape_.observation_bytes;
  }
  /// The size of one worker's actions.
  [[nodiscard]] std::size_t action_bytes(std::size_t steps) const noexcept {
    return steps * shape_.envs * shape_.action_bytes;
  }

 private:
  std::shared_ptr<const EnvSpec> spec_;
  std::string told_by_;  // the worker that set it
  StepShape shape_;
  std::optional<std::uint32_t> extras_;  // none: the workers have no policy
  std::size_t most_steps_ = 0;
};

}  // namespace batchrpc::env
