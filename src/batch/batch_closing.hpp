#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {

/// Whether a batcher is closed, and the callers that wait until all its rows are answered. Not
/// thread-safe.
class BatchClosing {
 public:
  [[nodiscard]] bool is_open() const noexcept { return why_.empty(); }
  /// Why it is closed.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Calling it again changes nothing.
  void close(std::string why) {
    if (is_open()) why_ = std::move(why);
  }
  /// The future is ready when the promise from take_waiters() is kept.
  [[nodiscard]] Future<void> wait() { return waiters_.emplace_back().get_future(); }

  /// Calls were removed and are still to be answered.
  void drop_begins() noexcept { ++drops_; }
  void drop_ends() noexcept { --drops_; }

  /// Returns the waiters to notify now, without a lock. There are none until the batcher is closed,
  /// `nothing_left` is true (no call waits or runs), and all dropped calls are answered.
  [[nodiscard]] std::vector<Promise<void>> take_waiters(bool nothing_left) {
    if (is_open() || !nothing_left || drops_ > 0) return {};
    return std::exchange(waiters_, {});
  }

 private:
  std::string why_;  // empty: it is open
  std::size_t drops_ = 0;
  std::vector<Promise<void>> waiters_;
};

}  // namespace batchrpc::detail
