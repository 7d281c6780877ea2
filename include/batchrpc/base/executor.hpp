#pragma once

#include <chrono>

#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"

namespace batchrpc {

/// A point on the library's time line. Only differences mean something: a virtual clock starts
/// anywhere.
using TimePoint = std::chrono::steady_clock::time_point;
/// A time span of the library's, in nanoseconds.
using Duration = std::chrono::steady_clock::duration;

/// Whatever runs tasks: a node's workers, its loop, or a wrapper of the program's own.
class BATCHRPC_EXPORT Executor {
 public:
  virtual ~Executor();
  /// Runs `task` some time later, never inside this call. Thread-safe. A task must not throw.
  virtual void post(Task task) = 0;
};

}  // namespace batchrpc
