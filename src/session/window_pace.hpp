#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>

namespace batchrpc {

/// When a caller sends what answers have led to, though it has read more of them: each time that a
/// third of its window was answered, whatever has been sent since. So caller and callee are both at
/// work, and what the one has ready does not wait for the other to be done with all that came at
/// once. By one thread at a time.
class WindowPace {
 public:
  explicit WindowPace(bool several_processors = has_several_processors()) noexcept
      : several_processors_(several_processors) {}

  /// An answer came, and so many calls are still under way. Whether to send now.
  bool is_due(std::size_t under_way) noexcept {
    constexpr std::size_t kFewest = 16;  // or sending costs more than is won
    constexpr std::size_t kParts = 3;
    if (++answered_ < std::max(kFewest, under_way / kParts)) return false;
    answered_ = 0;
    return several_processors_;
  }

 private:
  // On a single one it is most often more system calls only: the callee is there, too. As it is
  // when the process makes its first connection.
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
