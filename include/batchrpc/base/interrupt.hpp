#pragma once

#include <atomic>
#include <csignal>
#include <exception>
#include <functional>
#include <thread>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Turns SIGINT and SIGTERM into a call on a separate thread, so that Ctrl-C can end a program in
/// good order. A second signal of the same kind ends the process at once. A signal that is ignored,
/// for example under nohup, stays ignored. Works whatever threads exist already: sigwait() does
/// not, because LibTorch starts threads before main().
///
///     batchrpc::Promise<int> signalled;
///     const batchrpc::InterruptHandler handler([&](int signal) { signalled.set_value(signal); });
///     signalled.get_future().get();
///     node.shutdown(10s);
///
/// Only one may exist at a time, because signals belong to the process; a second throws
/// InvalidArgument. Throws Overloaded if its thread cannot be started.
class BATCHRPC_EXPORT InterruptHandler {
 public:
  /// `interrupted(signal)` is called at most once. It must not destroy this object. An exception of
  /// it ends the process.
  explicit InterruptHandler(std::function<void(int)> interrupted);

  /// Waits for a running `interrupted`, and restores the previous handling of the signals.
  ~InterruptHandler();

  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  void watch() const;

  std::function<void(int)> interrupted_;
  int pipe_[2] = {-1, -1};  // one byte per signal; 0 asks the watcher to end
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
  std::thread watcher_;
};

/// Thrown to end a program that a signal asked to end, through all its functions.
class BATCHRPC_EXPORT Interrupted : public std::exception {
 public:
  /// `signal`: its number.
  explicit Interrupted(int signal) : signal_(signal) {}
  /// Returns "interrupted".
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
  /// Returns the exit code by which shells know it: 128 + the signal.
  [[nodiscard]] int exit_code() const noexcept { return 128 + signal_; }

 private:
  int signal_;
};

/// An InterruptHandler for programs that regularly check whether they must end. Thread-safe.
class InterruptFlag {
 public:
  /// Whether a signal has arrived.
  [[nodiscard]] bool is_set() const { return signal_.load() != 0; }
  /// Throws Interrupted if a signal has arrived.
  void check() const {
    if (const int signal = signal_.load()) throw Interrupted(signal);
  }

 private:
  std::atomic<int> signal_{0};
  InterruptHandler handler_{[this](int signal) { signal_ = signal; }};
};

}  // namespace batchrpc
