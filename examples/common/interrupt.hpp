#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace batchrpc_examples {

/// Turns SIGINT and SIGTERM into a call on a thread of its own, so that Ctrl-C may end a program in
/// good order. The same signal a second time ends the process at once, as if nobody handled it.
///
/// One at a time in a process, as signals belong to the process; a second throws
/// `std::logic_error`.
class InterruptHandler {
 public:
  /// `interrupted(signal)` is called at most once. It may do anything, but must not destroy this.
  explicit InterruptHandler(std::function<void(int)> interrupted);

  /// Waits for `interrupted` when it runs, and handles the signals as before.
  ~InterruptHandler();

  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  void watch() const;

  std::function<void(int)> interrupted_;
  int pipe_[2] = {-1, -1};  // a byte for each signal; 0 asks the watcher to end
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
  std::thread watcher_;
};

}  // namespace batchrpc_examples
