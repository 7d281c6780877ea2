#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "common/cpu_time.hpp"
#include "tensor_benchmark/client.hpp"
#include "tensor_benchmark/copies.hpp"
#include "tensor_benchmark/shape.hpp"

namespace tensor_benchmark {

using batchrpc_benchmarks::CpuTime;

/// Something of each side; of `server` 0 when both are one process.
struct Sides {
  double client = 0;
  double server = 0;

  [[nodiscard]] double sum() const { return client + server; }
};

struct Sample {
  double gb_per_s = 0;       ///< 10^9 payload bytes, of echoes both ways
  CpuTime cpu_s_per_gb{};    ///< of the same
  Sides fresh_pages{};       ///< minor page faults, a call
  std::vector<double> us{};  ///< of each call
};

/// How often a process has touched a page that it did not have yet (minor page faults), all threads
/// together. Throws std::runtime_error.
std::uint64_t minor_faults(pid_t process);

/// Warms up for a quarter of `seconds`, and measures all calls of `seconds`. `server`: the other
/// process, if there is one.
Sample take_sample(Client& client, const Case& which, double seconds, std::optional<pid_t> server);

/// How often a call copies its payload in user space: copied bytes, a call, for each byte of the
/// tensor. Of a window of calls, which are not timed. Nothing where copies cannot be counted.
std::optional<Sides> count_copies(Client& client, const Case& which, CopyCounts& counts);

}  // namespace tensor_benchmark
