#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace batchrpc_examples {

/// How a process ended.
struct ProcessExit {
  int code = 0;    ///< what it returned; 0 when a signal ended it
  int signal = 0;  ///< the signal that ended it, or 0

  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }

  /// `exited with code 3`, `was ended by signal 9 (Killed)`.
  [[nodiscard]] std::string describe() const;
};

/// The path of the program that is running, under whose name a child of it is seen; where its file
/// is gone, as after an update, one that still starts it.
std::string running_program();

struct ProcessOptions {
  std::vector<std::string> arguments{};  ///< without the program's name
  std::vector<std::pair<std::string, std::string>>
      environment{};                        ///< added to, or instead of, ours
  std::string program = running_program();  ///< a path

  /// What the kernel sends the child when we die without having stopped it; 0: nothing, when the
  /// child finds out by itself and has something to say about it.
  int parent_death_signal = SIGKILL;
};

/// A child process that does not outlive us: the destructor ends it, and the kernel sends it
/// `parent_death_signal` when we are killed. For the kernel (PR_SET_PDEATHSIG) the end of the
/// *thread* that started the child counts as ours, so start children from one that stays, such as
/// the main one.
///
/// Safe to start with other threads running. The child begins with no signal blocked or ignored.
/// Not thread safe; one thread at a time uses an object.
class ChildProcess {
 public:
  /// Throws `std::system_error` when the program cannot be started.
  explicit ChildProcess(const ProcessOptions& options);

  /// A copy of this process that runs `body`, whose result is its exit code (1 when it throws, with
  /// the reason on standard error), and runs no destructor behind it. Starts faster than a program
  /// that loads large libraries. To be made before this process has threads of its own: the copy
  /// has only the calling one, and locks that others held stay locked there. Throws
  /// `std::system_error`.
  explicit ChildProcess(const std::function<int()>& body);

  /// As `stop()`.
  ~ChildProcess();

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// How it ended, or nothing while it runs. Reaps it; may be asked again.
  std::optional<ProcessExit> poll();

  /// Waits until it ends.
  ProcessExit wait();

  /// Waits at most this long.
  std::optional<ProcessExit> wait_for(std::chrono::milliseconds time);

  /// Sends a signal, unless it has ended.
  void signal(int number);

  /// Asks it to end (SIGTERM), and kills it when it has not after `grace`.
  ProcessExit stop(std::chrono::milliseconds grace = std::chrono::seconds(2));

 private:
  pid_t pid_ = -1;
  std::optional<ProcessExit> exit_;
};

/// Stops all: asks every one first and waits then, so that they share one time of grace.
void stop_all(std::vector<ChildProcess>& children,
              std::chrono::milliseconds grace = std::chrono::seconds(2));

/// Since when this process runs, its loading included; to 10 ms.
std::chrono::nanoseconds process_age();

}  // namespace batchrpc_examples
