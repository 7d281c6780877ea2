#pragma once

#include <memory>

#include "batchrpc/base/function.hpp"

namespace batchrpc::tls {

/// Runs tasks on up to two threads of its own, which exist while there are tasks and for a second
/// after. So handshakes do not delay the messages of the loop. Thread-safe.
class OffLoop {
 public:
  static constexpr int kMostThreads = 2;

  OffLoop();
  /// Destroys the tasks that have not begun. Waits for those that run, but not for its own caller.
  ~OffLoop();
  OffLoop(const OffLoop&) = delete;
  OffLoop& operator=(const OffLoop&) = delete;

  /// Runs `task` on one of the threads, or on this one if the system has no more threads.
  void post(Task task);

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace batchrpc::tls
