#pragma once

#include <atomic>
#include <csignal>
#include <exception>
#include <functional>
#include <thread>

namespace batchrpc_examples {

/// Turns SIGINT and SIGTERM into a call on a thread of its own, so that Ctrl-C may end a program in
/// good order. The same signal a second time ends the process at once, as if nobody handled it. A
/// signal that is ignored, as under nohup, stays ignored.
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

/// What ends a program that a signal asks to end, once it has come out of whatever it did.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
  [[nodiscard]] int exit_code() const noexcept { return 128 + signal_; }

 private:
  int signal_;
};

/// An InterruptHandler for programs that look now and then whether they are to end.
class InterruptFlag {
 public:
  [[nodiscard]] bool is_set() const { return signal_.load() != 0; }
  /// Throws Interrupted when a signal has come.
  void check() const {
    if (const int signal = signal_.load()) throw Interrupted(signal);
  }

 private:
  std::atomic<int> signal_{0};
  InterruptHandler handler_{[this](int signal) { signal_ = signal; }};
};

}  // namespace batchrpc_examples
