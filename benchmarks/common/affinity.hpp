#pragma once

#include <sched.h>

namespace batchrpc_benchmarks {

/// Keeps the calling thread on one CPU, the last of those that it may use, until destroyed. Threads
/// and processes started in that time begin there and stay there.
class PinnedToOneCpu {
 public:
  /// Does nothing if `pinned` is false. Throws std::system_error.
  explicit PinnedToOneCpu(bool pinned);
  ~PinnedToOneCpu();
  PinnedToOneCpu(const PinnedToOneCpu&) = delete;
  PinnedToOneCpu& operator=(const PinnedToOneCpu&) = delete;

 private:
  bool pinned_;
  cpu_set_t before_{};
};

}  // namespace batchrpc_benchmarks
