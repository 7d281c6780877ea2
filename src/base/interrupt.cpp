#include "batchrpc/base/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/start_thread.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc {

namespace {

// A signal handler can only use static data. It writes to a pipe. A signalfd would need blocked
// signals, but libraries may have started threads before main() that block none (OpenBLAS does).
std::atomic<int> signal_pipe{-1};

void write_byte(int file, unsigned char byte) {
  [[maybe_unused]] const ssize_t written = ::write(file, &byte, 1);
}

void pass_on(int number) {
  const int error = errno;
  write_byte(signal_pipe.load(), static_cast<unsigned char>(number));
  errno = error;
}

}  // namespace

InterruptHandler::InterruptHandler(std::function<void(int)> interrupted)
    : interrupted_(std::move(interrupted)) {
  if (::pipe2(pipe_, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
  }
  int none = -1;
  if (!signal_pipe.compare_exchange_strong(none, pipe_[1])) {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    throw InvalidArgument("a process may have only one InterruptHandler at a time");
  }
  try {
    watcher_ = start_thread("signals", [this] { watch(); });
  } catch (...) {
    signal_pipe = -1;
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    throw;
  }

  struct sigaction action {};
  action.sa_handler = pass_on;
  action.sa_flags =
      static_cast<int>(SA_RESTART | SA_RESETHAND);  // a second signal gets the default action
  ::sigemptyset(&action.sa_mask);
  const auto handle = [&action](int number, struct sigaction& before) {
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  };
  handle(SIGINT, interrupt_before_);
  handle(SIGTERM, terminate_before_);
}

InterruptHandler::~InterruptHandler() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
  write_byte(pipe_[1], 0);
  watcher_.join();
  signal_pipe = -1;
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

void InterruptHandler::watch() const {
  bool called = false;
  while (true) {
    unsigned char byte = 0;
    if (::read(pipe_[0], &byte, 1) != 1) continue;  // interrupted by a signal
    if (byte == 0) return;
    if (!called) interrupted_(byte);
    called = true;
  }
}

}  // namespace batchrpc
