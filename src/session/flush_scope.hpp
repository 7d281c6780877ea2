#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/future/wait.hpp"

namespace batchrpc {

class Connection;

/// While a thread works for a node (a batch of messages, a handler, a timer): what it sends
/// gathers, and leaves at the scope's end or before the thread waits; and when it waits, it does so
/// by the node's context.
class FlushScope {
 public:
  explicit FlushScope(std::shared_ptr<WaitContext> context);
  ~FlushScope();
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;

  /// Notes that `connection` has something to send. False when the calling thread is in no scope.
  static bool defer(Connection& connection);

  /// Sends what the calling thread's scopes have gathered.
  static void flush_current();

  /// For the time of which the calling thread is in no scope: those that it is in have flushed.
  class Hidden {
   public:
    Hidden() : innermost_(std::exchange(innermost(), nullptr)) {}
    ~Hidden() { innermost() = innermost_; }
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;

   private:
    FlushScope* const innermost_;
  };

  /// Makes the scope's end hand the sending to the loop, for a thread that has more to do at once.
  void leave_to_loop() noexcept { leave_to_loop_ = true; }

 private:
  using Dirty =
      std::vector<std::shared_ptr<Connection>, detail::PoolAllocator<std::shared_ptr<Connection>>>;
  static FlushScope*& innermost() noexcept;
  void flush();

  WaitScope wait_;
  FlushScope* outer_;
  Dirty dirty_;
  bool leave_to_loop_ = false;
};

}  // namespace batchrpc
