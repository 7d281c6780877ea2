#pragma once

#include <chrono>

#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"

namespace batchrpc {

/// A point in time on a node's clock. Only differences are meaningful, because a virtual clock may
/// start at any value.
using TimePoint = std::chrono::steady_clock::time_point;
/// A time span in nanoseconds.
using Duration = std::chrono::steady_clock::duration;
/// As a time-out: wait for ever.
inline constexpr Duration kNoTimeout = Duration::max();

/// An object that runs tasks: a node's workers, its loop, or a wrapper written by the program.
class BATCHRPC_EXPORT Executor {
 public:
  virtual ~Executor();
  /// Runs `task` later, never inside this call. Thread-safe. A task must not throw.
  virtual void post(Task task) = 0;
};

}  // namespace batchrpc
