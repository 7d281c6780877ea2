#include "common/affinity.hpp"

#include "common/throw_errno.hpp"

namespace batchrpc_benchmarks {

PinnedToOneCpu::PinnedToOneCpu(bool pinned) : pinned_(pinned) {
  if (!pinned_) return;
  if (::sched_getaffinity(0, sizeof before_, &before_) != 0) throw_errno("sched_getaffinity");
  std::size_t last = 0;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before_)) last = cpu;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) throw_errno("sched_setaffinity");
}

PinnedToOneCpu::~PinnedToOneCpu() {
  if (pinned_) ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace batchrpc_benchmarks
