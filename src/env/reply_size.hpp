#pragma once

#include <cstddef>
#include <cstdint>

#include "batchrpc/call/node_options.hpp"

namespace batchrpc::env {

/// The values that determine a step's size in a message.
struct StepShape {
  std::size_t envs = 1;
  std::size_t observation_bytes = 0;  ///< of one environment
  std::size_t action_bytes = 0;       ///< for one environment
  std::size_t extras = 0;             ///< extra values for each action
};

/// The limits of a node's messages: NodeOptions.
struct MessageLimits {
  std::uint64_t frame_bytes = 0;
  std::uint64_t payload_bytes = 0;
};
[[nodiscard]] inline MessageLimits limits_of(const NodeOptions& options) noexcept {
  return {.frame_bytes = options.limits.max_frame_bytes,
          .payload_bytes = options.limits.max_payload_bytes};
}

/// The number of steps that one message may ask for, so that the answer always fits: 1 GiB of
/// observations, and within the limits. Zero: not even one fits.
[[nodiscard]] std::size_t most_steps(const StepShape& step, const MessageLimits& limits) noexcept;

}  // namespace batchrpc::env
