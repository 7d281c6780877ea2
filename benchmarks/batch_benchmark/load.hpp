#pragma once

#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <functional>
#include <vector>

namespace batch_benchmark {

/// Requests one row from a batcher of this process.
using Ask = std::function<batchrpc::Future<std::int64_t>()>;

/// The duration of a load.
struct Span {
  double warm_up = 0;  ///< seconds that do not count
  double seconds = 0;
};

/// The results of a load, within its counted seconds.
struct Load {
  double rows_per_s = 0;     ///< rows answered per second
  std::vector<double> us{};  ///< latency of each answered row
  std::uint64_t failed = 0;  ///< rows that were refused

  /// Whether at least `percent` percent of all rows were answered within `limit_us`.
  [[nodiscard]] bool keeps(double limit_us, double percent) const;
};

/// Sends rows at random times (Poisson), `rows_per_s` per second, regardless of earlier ones. A
/// row's latency counts from its scheduled time, so that a late send counts too.
Load open_loop(const Ask& ask, double rows_per_s, const Span& span, std::uint64_t seed);

/// Runs `callers` callers in this process. Each sends its next row when it has its answer, on the
/// thread that delivers it.
Load closed_loop(const Ask& ask, int callers, const Span& span);

/// Makes sleeps of the calling thread end within microseconds of the requested time.
void sleep_exactly();

}  // namespace batch_benchmark
