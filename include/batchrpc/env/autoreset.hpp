#pragma once

#include <cstdint>

namespace batchrpc {

/// What happens to an environment whose episode has ended, as in Gymnasium's AutoresetMode.
enum class Autoreset : std::uint8_t {
  /// The observation after the last step is the episode's last. The next step ignores the
  /// environment's action, resets it, and returns its first observation with a reward of 0 and
  /// `started`. The ignored action may have any value if this is the first step of its message. For
  /// later steps of a message nobody knows in advance which actions will be ignored, so all must be
  /// allowed.
  next_step,
  /// The environment is reset at once. The observation after the last step is the next episode's
  /// first; EnvBatch::final_observations has the last one. No step is lost.
  same_step,
};

}  // namespace batchrpc
