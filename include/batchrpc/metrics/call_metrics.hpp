#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/histogram.hpp"

namespace batchrpc {

/// How many calls ended in which error.
class BATCHRPC_EXPORT ErrorCounts {
 public:
  /// One more than the largest ErrorCode. At 0: codes that are not known here, of a newer peer.
  static constexpr std::size_t kCodes = 17;
  /// Where a code is counted.
  [[nodiscard]] static constexpr std::size_t index_of(ErrorCode code) noexcept {
    const auto index = static_cast<std::size_t>(code);
    return index < kCodes ? index : 0;
  }

  /// How many ended in that one; and in any.
  /// @{
  [[nodiscard]] std::uint64_t of(ErrorCode code) const noexcept { return counts[index_of(code)]; }
  [[nodiscard]] std::uint64_t total() const noexcept;
  /// @}
  void add(const ErrorCounts& other) noexcept;  ///< those of others, too

  friend bool operator==(const ErrorCounts&, const ErrorCounts&) = default;

  std::array<std::uint64_t, kCodes> counts{};  ///< by index_of(code)
};

/// Calls in one direction: made by a node, or answered by it. Each that began ends once: with a
/// result or with one error; `calls` is the sum of these and of those under way.
struct BATCHRPC_EXPORT CallMetrics {
  std::uint64_t calls = 0;      ///< that began
  std::uint64_t ok = 0;         ///< that ended with a result
  ErrorCounts errors{};         ///< and that ended otherwise
  std::uint64_t in_flight = 0;  ///< that have not ended
  /// Of those made, messages that want no answer: they are not among the calls. A node that gets
  /// them counts them as calls.
  std::uint64_t notifications = 0;
  /// Frames of calls, or of their answers, with what travels beside them, in bytes; each attempt to
  /// be taken is counted once, however often it was sent.
  /// @{
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  /// @}
  /// ns of the calls that ended with a result. Made: from the call until its answer was read.
  /// Answered: from when the call was read until its result was there.
  Histogram latency{};

  void add(const CallMetrics& other);  ///< those of others, too
};

}  // namespace batchrpc
