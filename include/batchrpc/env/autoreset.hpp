#pragma once

#include <cstdint>

namespace batchrpc {

/// What becomes of an environment whose episode has ended: Gymnasium's AutoresetMode.
enum class Autoreset : std::uint8_t {
  /// The observation after the last step is the last one. The next step takes no action of it,
  /// resets it, and gives its first observation, with a reward of 0 and `started`. It may have any
  /// action, if that step is the first of its message; of the others of a message nobody knows in
  /// advance which that are, and all have to be allowed.
  next_step,
  /// It is reset at once: the observation after the last step is the next episode's first, and the
  /// last one comes beside it (EnvBatch::final_observations). No step is lost.
  same_step,
};

}  // namespace batchrpc
