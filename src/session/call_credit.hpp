#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc {

/// Whether a session has room for another call (NodeOptions::max_outstanding_bytes), and who waits
/// for room: docs/decisions/0016. Callers that are handlers have a queue of their own. Their calls
/// count only the bytes that have not left yet, which the peer reads whatever it waits for; so
/// calls that call back never wait for each other. Not thread-safe, but for has_waits().
class CallCredit {
 public:
  enum class Of : std::uint8_t { handlers, others };

  /// The bytes that are in use.
  struct Usage {
    std::uint64_t unsent = 0;   ///< of calls that have not left or are not acknowledged
    std::uint64_t paused = 0;   ///< of payloads that the peer has paused
    std::uint64_t pending = 0;  ///< of calls that wait for their reply

    [[nodiscard]] std::uint64_t of(Of whose) const noexcept;
  };

  /// A caller that waits for room.
  struct Wait {
    std::uint64_t bytes = 0;
    Promise<void> promise;
    std::optional<CallContext> context;  ///< of the handler that waits
  };

  explicit CallCredit(std::uint64_t limit) : limit_(limit) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  /// Whether a call of the calling thread is admitted. Calls of the library always are.
  [[nodiscard]] bool admit(std::uint64_t bytes, bool of_library, const Usage& usage);
  void add(Wait&& wait);
  /// The first wait that there is room for now, which leaves; those of handlers come first. Its
  /// room is promised to it until it calls.
  [[nodiscard]] std::optional<Wait> next(const Usage& usage);
  /// Room that was promised to waits which have made no call belongs to everybody again.
  void forget_promises() noexcept;
  /// All waits, which leave.
  [[nodiscard]] std::vector<Wait> take_all();
  /// Whether anybody waits; any thread may ask.
  [[nodiscard]] bool has_waits() const noexcept {
    return has_waits_.load(std::memory_order_relaxed);
  }

 private:
  struct Line {
    std::deque<Wait> waits;
    std::uint64_t promised = 0;
  };

  [[nodiscard]] Line& line_of(Of whose) { return lines_[static_cast<std::size_t>(whose)]; }
  [[nodiscard]] bool fits(std::uint64_t used, std::uint64_t bytes) const noexcept;

  const std::uint64_t limit_;
  std::array<Line, 2> lines_;
  std::atomic<bool> has_waits_{false};
};

}  // namespace batchrpc
