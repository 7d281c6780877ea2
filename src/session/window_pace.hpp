#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>

namespace batchrpc {

/// Decides when a caller sends the calls that replies have led to, though it has read more replies.
/// It does so each time a third of its window was answered, whatever has been sent since. So caller
/// and callee both work: neither waits until the other has finished all that came at once. Used by
/// one thread at a time.
class WindowPace {
 public:
  explicit WindowPace(bool several_processors = has_several_processors()) noexcept
      : several_processors_(several_processors) {}

  /// A reply came, and `under_way` calls are still in flight. Returns whether to send now.
  bool is_due(std::size_t under_way) noexcept {
    constexpr std::size_t kFewest = 16;  // with fewer, sending costs more than it gains
    constexpr std::size_t kParts = 3;
    if (++answered_ < std::max(kFewest, under_way / kParts)) return false;
    answered_ = 0;
    return several_processors_;
  }

 private:
  // On a single processor, sending early mostly means more system calls, since the callee runs
  // there, too. Determined when the process makes its first connection.
  static bool has_several_processors() noexcept {
    static const bool several = [] {
      cpu_set_t set;
      return ::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
    }();
    return several;
  }

  const bool several_processors_;
  std::size_t answered_ = 0;
};

}  // namespace batchrpc
