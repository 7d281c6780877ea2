#pragma once

#include <cstddef>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// The most tasks that one thread runs on top of each other, each while the one below it waits.
/// Bounds the stack.
inline constexpr int kMaxNestedTasks = 128;

/// Runs the handlers of a node that are not marked short, several at once.
class Workers : public Executor {
 public:
  /// Whether the calling thread runs one of these tasks.
  [[nodiscard]] virtual bool is_worker() const noexcept = 0;

  /// Drops the tasks that wait, and gives those that run `grace` to finish. Returns the number of
  /// threads that are still busy then.
  virtual std::size_t stop(Duration grace) = 0;
};

}  // namespace batchrpc
