#pragma once

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// Runs tasks on the thread that posts them: before post() returns, or, when that thread is running
/// such a task already, right after it, so that chains of any length do not use up the stack.
class CallingThread final : public Executor {
 public:
  void post(Task task) override;
};

}  // namespace batchrpc::detail
