#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/future/wait.hpp"

namespace batchrpc {

class Connection;

/// Active while a thread works for a node (a batch of messages, a handler, a timer). Its output is
/// collected, and sent at the scope's end or before the thread waits. The thread waits through the
/// node's context.
class FlushScope {
 public:
  explicit FlushScope(std::shared_ptr<WaitContext> context);
  ~FlushScope();
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;

  /// Notes that `connection` has output to send. False when the calling thread is in no scope.
  static bool defer(Connection& connection);

  /// Sends the output that the calling thread's scopes have collected.
  static void flush_current();

  /// Hides the calling thread's scopes for its lifetime. They must have flushed.
  class Hidden {
   public:
    Hidden() : innermost_(std::exchange(innermost(), nullptr)) {}
    ~Hidden() { innermost() = innermost_; }
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;

   private:
    FlushScope* const innermost_;
  };

  /// Makes the loop send the output at the scope's end, for a thread that has more work to do at
  /// once.
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
