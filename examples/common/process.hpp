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
  int code = 0;    ///< its return value; 0 if a signal ended it
  int signal = 0;  ///< the signal that ended it, or 0

  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }

  /// A text: `exited with code 3` or `was ended by signal 9 (Killed)`.
  [[nodiscard]] std::string describe() const;
};

/// The path of the running program, under whose name a child appears. If its file is gone, as after
/// an update, a path that still starts it.
std::string running_program();

struct ProcessOptions {
  std::vector<std::string> arguments{};  ///< without the program's name
  std::vector<std::pair<std::string, std::string>>
      environment{};  ///< added to this process's environment, or replacing variables of it
  std::string program = running_program();  ///< a path

  /// The signal that the kernel sends the child if this process ends without having stopped it,
  /// until the child calls outlive_parent(). 0: none.
  int parent_death_signal = SIGKILL;
};

/// A child process that does not outlive this one. The destructor ends it, and the kernel sends it
/// `parent_death_signal` if this process is killed. For the kernel (PR_SET_PDEATHSIG) the end of
/// the *thread* that started the child counts. So start children from a thread that stays, such as
/// the main thread.
///
/// Children may be started while other threads run. A child begins with no signal blocked or
/// ignored. Not thread-safe: only one thread at a time may use an object.
class ChildProcess {
 public:
  /// Throws `std::system_error` if the program cannot be started.
  explicit ChildProcess(const ProcessOptions& options);

  /// Starts a copy of this process that runs `body`. Its result is the exit code (1 if it throws,
  /// with the reason on standard error); no destructors run afterwards. This is faster than
  /// starting a program that loads large libraries. Call it before this process has threads of its
  /// own: the copy has only the calling thread, and locks of other threads stay locked. Throws
  /// `std::system_error`.
  explicit ChildProcess(const std::function<int()>& body);

  /// Calls `stop()`.
  ~ChildProcess();

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Returns how it ended, or nothing while it runs. Reaps the process; may be called again.
  std::optional<ProcessExit> poll();

  /// Waits until it ends.
  ProcessExit wait();

  /// Waits at most this long.
  std::optional<ProcessExit> wait_for(std::chrono::milliseconds time);

  /// Sends a signal, unless the process has ended.
  void signal(int number);

  /// Asks it to end (SIGTERM), and kills it if it has not ended after `grace`.
  ProcessExit stop(std::chrono::milliseconds grace = std::chrono::seconds(2));

 private:
  pid_t pid_ = -1;
  std::optional<ProcessExit> exit_;
};

/// From now on this process ends at the latest 5 s after its parent has ended, by SIGALRM. Call it
/// when this process notices the end of its parent by itself, and can report it.
void outlive_parent();

/// Stops all children. Asks every one first and then waits, so that they share one grace period.
void stop_all(std::vector<ChildProcess>& children,
              std::chrono::milliseconds grace = std::chrono::seconds(2));

/// How long this process has been running, including the time to load it; to 10 ms.
std::chrono::nanoseconds process_age();

}  // namespace batchrpc_examples
