#pragma once

#include <cstddef>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Tasks that one thread runs on top of each other, each while the one below it waits; bounds its
/// stack.
inline constexpr int kMaxNestedTasks = 128;

/// Where the handlers of a node run that are not marked short, several at once.
class Workers : public Executor {
 public:
  /// Whether the calling thread runs one of these tasks.
  [[nodiscard]] virtual bool is_worker() const noexcept = 0;

  /// Drops the tasks that wait, and lets those that run finish for `grace`. Returns how many are
  /// still busy then.
  virtual std::size_t stop(Duration grace) = 0;
};

}  // namespace batchrpc
