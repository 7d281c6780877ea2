#pragma once

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// Runs tasks on the thread that posts them, before post() returns. If that thread is already
/// running such a task, the new one runs right after it, so that long chains do not use up the
/// stack.
class CallingThread final : public Executor {
 public:
  void post(Task task) override;
};

}  // namespace batchrpc::detail
