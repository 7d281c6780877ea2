#include "common/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

namespace batchrpc_examples {

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  [[nodiscard]] int get() const { return value_; }

  void reset() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool replaced = std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
      return text.substr(0, text.find('=')) == change.first;
    });
    if (!replaced) entries.emplace_back(text);
  }
  for (const auto& [name, value] : changes)
    entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The first steps of a child.
void begin_child(pid_t parent, int parent_death_signal) {
  if (parent_death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, parent_death_signal);
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  }

  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number)
    ::sigaction(number, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Only async-signal-safe calls between fork and exec, because other threads may have held any lock.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         pid_t parent, int parent_death_signal, int error_pipe) {
  begin_child(parent, parent_death_signal);
  ::execve(program, arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(error_pipe, &error, sizeof error);
  ::_exit(127);
}

ProcessExit exit_of(int status) {
  if (WIFSIGNALED(status)) return {.code = 0, .signal = WTERMSIG(status)};
  return {.code = WEXITSTATUS(status), .signal = 0};
}

}  // namespace

std::string ProcessExit::describe() const {
  if (signal == 0) return "exited with code " + std::to_string(code);
  return "was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

std::string running_program() {
  const std::string link = "/proc/self/exe";
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink(link, unknown);
  return std::filesystem::exists(path, unknown) ? path.string() : link;
}

ChildProcess::ChildProcess(const ProcessOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), options.program);
  std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);

  // The child writes the reason if exec fails. A successful exec closes its end.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {
    become(options.program.c_str(), argument_pointers.data(), environment_pointers.data(), parent,
           options.parent_death_signal, write_end.get());
  }
  write_end.reset();
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(read_end.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count == sizeof error) {
    wait();
    throw std::system_error(error, std::generic_category(), "cannot start " + options.program);
  }
}

ChildProcess::ChildProcess(const std::function<int()>& body) {
  std::fflush(nullptr);  // or both processes would write what is in the buffers
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ > 0) return;
  int code = 1;
  try {
    begin_child(parent, SIGKILL);
    code = body();
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
  } catch (...) {
    std::cerr << "ended by an exception that is not a std::exception" << std::endl;
  }
  std::fflush(nullptr);
  ::_exit(code);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) stop();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    if (pid_ > 0) stop();
    pid_ = std::exchange(other.pid_, -1);
    exit_ = other.exit_;
  }
  return *this;
}

std::optional<ProcessExit> ChildProcess::poll() {
  int status = 0;
  if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) exit_ = exit_of(status);
  return exit_;
}

ProcessExit ChildProcess::wait() {
  int status = 0;
  while (!exit_) {
    if (::waitpid(pid_, &status, 0) == pid_) {
      exit_ = exit_of(status);
    } else if (errno != EINTR) {
      fail("waitpid");
    }
  }
  return *exit_;
}

std::optional<ProcessExit> ChildProcess::wait_for(std::chrono::milliseconds time) {
  // Polls, because waitpid has no time limit and pidfd_open is not available everywhere.
  const auto deadline = Clock::now() + time;
  while (!poll() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return exit_;
}

void ChildProcess::signal(int number) {
  if (!poll()) ::kill(pid_, number);
}

ProcessExit ChildProcess::stop(std::chrono::milliseconds grace) {
  signal(SIGTERM);
  if (!wait_for(grace)) signal(SIGKILL);
  return wait();
}

// The kernel sends SIGALRM for each thread of the parent that ends while it is the last one to have
// adopted this process. The alarm's own one comes 5 s later.
void outlive_parent() {
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    if (info->si_code != SI_KERNEL) {
      ::alarm(5);
      return;
    }
    ::signal(SIGALRM, SIG_DFL);
    ::raise(SIGALRM);  // when this handler has returned
  };
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESTART);
  ::sigaction(SIGALRM, &action, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGALRM);
}

void stop_all(std::vector<ChildProcess>& children, std::chrono::milliseconds grace) {
  for (ChildProcess& child : children)
    child.signal(SIGTERM);
  const auto deadline = Clock::now() + grace;
  for (ChildProcess& child : children) {
    child.wait_for(
        std::max(std::chrono::milliseconds(0),
                 std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now())));
  }
  for (ChildProcess& child : children)
    child.signal(SIGKILL);
  for (ChildProcess& child : children)
    child.wait();
}

std::chrono::nanoseconds process_age() {
  // Field 22, in ticks since boot. The second field, the name, may contain spaces.
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  for (int number = 3; number <= 22; ++number)
    fields >> field;
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const double now =
      static_cast<double>(since_boot.tv_sec) + static_cast<double>(since_boot.tv_nsec) * 1e-9;
  const double begin =
      std::strtod(field.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::max(now - begin, 0.0)));
}

}  // namespace batchrpc_examples
