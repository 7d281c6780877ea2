#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "signal.hpp"

namespace batchrpc::test {

/// A process that a test starts, and that does not outlive the test. Its output and errors come to
/// this process. Its input ends when this process closes it, or ends.
class Child {
 public:
  using Words = std::vector<std::string>;

  /// Starts one of the test programs by its name (tests/helpers/NAME.cpp), or any program by its
  /// path.
  explicit Child(Words command) {
    if (command.front().find('/') == std::string::npos)
      command.front() = BATCHRPC_BIN_DIR "/" + command.front();
    std::array<int, 2> input{};
    std::array<int, 2> output{};
    if (::pipe2(input.data(), O_CLOEXEC) != 0 || ::pipe2(output.data(), O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "pipe2");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : command)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int failed =
        ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    output_ = output[0];
    if (failed != 0) {
      pid_ = -1;
      close_all();
      throw std::system_error(failed, std::generic_category(), "cannot start " + command.front());
    }
  }
  ~Child() {
    if (pid_ > 0 && !status_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    close_all();
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        input_(std::exchange(other.input_, -1)),
        output_(std::exchange(other.output_, -1)),
        text_(std::move(other.text_)),
        status_(other.status_) {}
  Child& operator=(Child&&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Sends a signal. For SIGSTOP, returns when the process has stopped.
  void signal(int number) const {
    ::kill(pid_, number);
    int status = 0;
    if (number == SIGSTOP) ::waitpid(pid_, &status, WUNTRACED);
  }

  /// Ends the input of the process, which asks the test programs to end.
  void close_input() {
    if (input_ >= 0) ::close(std::exchange(input_, -1));
  }

  /// The output so far.
  [[nodiscard]] const std::string& output() const { return text_; }

  /// Waits until the process writes a whole line that begins with `beginning`, and returns the rest
  /// of that line. Throws when the process ends or takes too long.
  std::string line(const std::string& beginning) {
    const auto deadline = Clock::now() + kPatience;
    while (true) {
      for (std::size_t at = 0; at < text_.size();) {
        const std::size_t end = text_.find('\n', at);
        if (end == std::string::npos) break;
        if (text_.compare(at, beginning.size(), beginning) == 0)
          return text_.substr(at + beginning.size(), end - at - beginning.size());
        at = end + 1;
      }
      if (!read(deadline))
        throw std::runtime_error("no line '" + beginning + "' came, but:\n" + text_);
    }
  }

  /// Waits for the end of the process, and reads its output to the end. Returns the exit code, or
  /// minus the signal.
  int wait() {
    const auto deadline = Clock::now() + kPatience;
    while (read(deadline)) {
    }
    int status = 0;
    while (!status_ && ::waitpid(pid_, &status, WNOHANG) != pid_) {
      if (Clock::now() > deadline) throw std::runtime_error("the child does not end:\n" + text_);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!status_) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return *status_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Reads some output. False at the end, and at the deadline.
  bool read(Clock::time_point deadline) {
    if (output_ < 0) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{.fd = output_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(output_, buffer.data(), buffer.size());
    if (count <= 0) {
      ::close(std::exchange(output_, -1));
      return false;
    }
    text_.append(buffer.data(), static_cast<std::size_t>(count));
    return true;
  }
  void close_all() {
    close_input();
    if (output_ >= 0) ::close(std::exchange(output_, -1));
  }

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string text_;
  std::optional<int> status_;
};

}  // namespace batchrpc::test
