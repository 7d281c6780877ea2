#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/histogram.hpp"

namespace batchrpc {

/// The number of calls that ended in each error.
class BATCHRPC_EXPORT ErrorCounts {
 public:
  /// One more than the largest ErrorCode. Index 0 counts codes of newer peers that this version
  /// does not know.
  static constexpr std::size_t kCodes = 18;
  /// The index at which `code` is counted.
  [[nodiscard]] static constexpr std::size_t index_of(ErrorCode code) noexcept {
    const auto index = static_cast<std::size_t>(code);
    return index < kCodes ? index : 0;
  }

  /// The calls that ended in `code`, and in any error.
  /// @{
  [[nodiscard]] std::uint64_t of(ErrorCode code) const noexcept { return counts[index_of(code)]; }
  [[nodiscard]] std::uint64_t total() const noexcept;
  /// @}
  void add(const ErrorCounts& other) noexcept;  ///< adds the counts of `other`

  friend bool operator==(const ErrorCounts&, const ErrorCounts&) = default;

  std::array<std::uint64_t, kCodes> counts{};  ///< indexed by index_of(code)
};

/// Calls in one direction: made by a node, or answered by it. Each call ends once, with a result or
/// with one error. `calls` is the sum of the ended calls and those in flight.
struct BATCHRPC_EXPORT CallMetrics {
  std::uint64_t calls = 0;      ///< calls that began
  std::uint64_t ok = 0;         ///< calls that ended with a result
  ErrorCounts errors{};         ///< calls that ended with an error
  std::uint64_t in_flight = 0;  ///< calls that have not ended
  /// Messages without an answer that were sent; they are not counted in `calls`. The node that
  /// receives them counts them as calls.
  std::uint64_t notifications = 0;
  /// Bytes of the frames of calls or of answers, with their payloads. Each attempt is counted once,
  /// even if it was sent again after a reconnection.
  /// @{
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  /// @}
  /// Nanoseconds of the calls that ended with a result. For calls made: from the call until its
  /// answer was read. For calls answered: from reading the call until its result was ready.
  Histogram latency{};

  void add(const CallMetrics& other);  ///< adds the metrics of `other`
};

}  // namespace batchrpc
