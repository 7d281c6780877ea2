#pragma once

#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <functional>
#include <vector>

namespace batch_benchmark {

/// Asks for one row of a batcher of this process.
using Ask = std::function<batchrpc::Future<std::int64_t>()>;

/// How long a load lasts.
struct Span {
  double warm_up = 0;  ///< seconds, of which nothing counts
  double seconds = 0;
};

/// What came of it, within its seconds.
struct Load {
  double rows_per_s = 0;     ///< answered
  std::vector<double> us{};  ///< of each answered row
  std::uint64_t failed = 0;  ///< rows that were refused

  /// That so many percent of all rows were answered within `limit_us`.
  [[nodiscard]] bool keeps(double limit_us, double percent) const;
};

/// Rows that come at random (Poisson), so many a second, whatever becomes of earlier ones. A row's
/// time counts from when it was to come, so that one that comes late is not forgiven.
Load open_loop(const Ask& ask, double rows_per_s, const Span& span, std::uint64_t seed);

/// So many callers of this process, each of which asks again when it has its answer, on the thread
/// that brings it.
Load closed_loop(const Ask& ask, int callers, const Span& span);

/// The calling thread's sleeps end within microseconds of what they ask for.
void sleep_exactly();

}  // namespace batch_benchmark
