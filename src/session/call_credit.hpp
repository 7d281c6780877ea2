#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc {

/// Decides whether a session has room for another call (NodeOptions::limits.max_outstanding_bytes),
/// and queues the callers that wait for room: docs/decisions/0016. Callers that are handlers have a
/// queue of their own. Their calls count only the bytes that have not left yet. The peer reads
/// those whatever it waits for, so calls that call back never wait for each other. Not thread-safe,
/// except has_waits().
class CallCredit {
 public:
  enum class Of : std::uint8_t { handlers, others };

  /// The bytes that are in use.
  struct Usage {
    std::uint64_t unsent = 0;   ///< the bytes of calls that are not sent or not acknowledged
    std::uint64_t paused = 0;   ///< the bytes of payloads that the peer has paused
    std::uint64_t pending = 0;  ///< the bytes of calls that wait for their reply

    [[nodiscard]] std::uint64_t of(Of whose) const noexcept {
      return whose == Of::handlers ? unsent : std::max(unsent + paused, pending);
    }
  };

  /// A caller that waits for room.
  struct Wait {
    std::uint64_t bytes = 0;
    Promise<void> promise;
    std::optional<CallContext> context;  ///< the context of the handler that waits
  };

  explicit CallCredit(std::uint64_t limit) : limit_(limit) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  /// Whether a call of the calling thread is admitted. Calls of the library itself always are.
  [[nodiscard]] bool admit(std::uint64_t bytes, bool of_library, const Usage& usage) {
    if (lines_[0].promised + lines_[1].promised == 0 && fits(usage.of(Of::others), bytes))
        [[likely]]
      return true;
    return admit_in_line(bytes, of_library, usage);
  }
  void add(Wait&& wait);
  /// Removes and returns the first caller that there is room for now. Handlers come first. The room
  /// is reserved for this caller until it calls.
  [[nodiscard]] std::optional<Wait> next(const Usage& usage);
  /// Drops the reservations of callers that have made no call.
  void forget_promises() noexcept;
  /// Removes and returns all waiting callers.
  [[nodiscard]] std::vector<Wait> take_all();
  /// Whether a caller waits. Any thread may ask.
  [[nodiscard]] bool has_waits() const noexcept {
    return has_waits_.load(std::memory_order_relaxed);
  }

 private:
  struct Line {
    std::deque<Wait> waits;
    std::uint64_t promised = 0;
  };

  [[nodiscard]] Line& line_of(Of whose) { return lines_[static_cast<std::size_t>(whose)]; }
  // admit() where room is promised, or the bytes do not fit beside all others.
  [[nodiscard]] bool admit_in_line(std::uint64_t bytes, bool of_library, const Usage& usage);
  // Whether `bytes` more fit beside the bytes in use. A call that is larger than the limit fits
  // when half of the limit is free.
  [[nodiscard]] bool fits(std::uint64_t used, std::uint64_t bytes) const noexcept {
    return bytes <= limit_ ? used <= limit_ - bytes : used <= limit_ / 2;
  }

  const std::uint64_t limit_;
  std::array<Line, 2> lines_;
  std::atomic<bool> has_waits_{false};
};

}  // namespace batchrpc
