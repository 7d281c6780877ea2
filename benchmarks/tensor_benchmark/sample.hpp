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

/// A value for each side; `server` is 0 if both are one process.
struct Sides {
  double client = 0;
  double server = 0;

  [[nodiscard]] double sum() const { return client + server; }
};

struct Sample {
  double gb_per_s = 0;       ///< 10^9 payload bytes; for echoes both ways
  CpuTime cpu_s_per_gb{};    ///< of these bytes
  Sides fresh_pages{};       ///< minor page faults per call
  std::vector<double> us{};  ///< per call
};

/// The number of times that a process, over all its threads, has touched a page that it did not
/// have yet (minor page faults). Throws std::runtime_error.
std::uint64_t minor_faults(pid_t process);

/// Warms up for a quarter of `seconds`, then measures all calls for `seconds`. `server` is the
/// other process, if there is one.
Sample take_sample(Client& client, const Case& which, double seconds, std::optional<pid_t> server);

/// How often a call copies its payload in user space: copied bytes per call and per byte of the
/// tensor. Measured over a window of calls, which are not timed. Nothing if copies cannot be
/// counted.
std::optional<Sides> count_copies(Client& client, const Case& which, CopyCounts& counts);

}  // namespace tensor_benchmark
