#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {

/// Whether a batcher is closed, and who waits until all of its rows have been told. Not
/// thread-safe.
class BatchClosing {
 public:
  [[nodiscard]] bool is_open() const noexcept { return why_.empty(); }
  /// Why it is closed.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Again, it changes nothing.
  void close(std::string why) {
    if (is_open()) why_ = std::move(why);
  }
  /// Ready when take_waiters() has given its promise out, and that is kept.
  [[nodiscard]] Future<void> wait() { return waiters_.emplace_back().get_future(); }

  /// Calls were taken out, and are yet to be told.
  void drop_begins() noexcept { ++drops_; }
  void drop_ends() noexcept { --drops_; }

  /// Those whom to tell now, without a lock: nobody, until the batcher is closed, `nothing_left`
  /// waits or runs, and those that were dropped have been told.
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
