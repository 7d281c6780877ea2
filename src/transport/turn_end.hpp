#pragma once

#include <utility>

namespace batchrpc::detail {

/// A deferred task that will defer the rest of its work notes with end_turn() that others are next.
/// The loop whose thread it is then looks for ready sockets before it runs more deferred tasks.
/// @{
inline bool& ends_turn() noexcept {
  thread_local bool ends = false;
  return ends;
}
inline void end_turn() noexcept { ends_turn() = true; }
[[nodiscard]] inline bool take_turn_end() noexcept { return std::exchange(ends_turn(), false); }
/// @}

}  // namespace batchrpc::detail
