#include "common/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace batchrpc_examples {
namespace process_test {

using namespace std::chrono_literals;

// Started by the first test below, this program is its own child, and is done before its main().
const bool kChildIsDone = [] {
  const char* code = std::getenv("BATCHRPC_EXAMPLES_TEST_EXIT_CODE");
  if (code != nullptr) ::_exit(std::atoi(code));
  return true;
}();

ProcessOptions shell(const std::string& script) {
  return {.arguments = {"-c", script}, .environment = {}, .program = "/bin/sh"};
}

bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.at(name_end + 2) != 'Z';
}

TEST_CASE("a child is this program by default, and gets the environment it is given") {
  ProcessOptions options;
  options.environment = {{"BATCHRPC_EXAMPLES_TEST_EXIT_CODE", "42"}};
  ChildProcess child(options);
  const ProcessExit end = child.wait();
  CHECK(end.code == 42);
  CHECK_FALSE(end.success());
  CHECK(end.describe() == "exited with code 42");
}

TEST_CASE("a child that is this program is seen under its name") {
  const std::filesystem::path program = ProcessOptions().program;
  CHECK(program.filename() == "test_examples");
  CHECK(std::filesystem::equivalent(program, "/proc/self/exe"));
}

TEST_CASE("a child gets its arguments, our environment and what replaces parts of it") {
  ::setenv("BATCHRPC_EXAMPLES_TEST_KEPT", "kept", 1);
  ::setenv("BATCHRPC_EXAMPLES_TEST_REPLACED", "old", 1);
  ProcessOptions options = shell(
      "test \"$BATCHRPC_EXAMPLES_TEST_KEPT\" = kept && "
      "test \"$BATCHRPC_EXAMPLES_TEST_REPLACED\" = new && test \"$1\" = 'two words'");
  options.arguments.insert(options.arguments.end(), {"name", "two words"});
  options.environment = {{"BATCHRPC_EXAMPLES_TEST_REPLACED", "new"}};
  CHECK(ChildProcess(options).wait().success());
}

TEST_CASE("a program that cannot be started is an error, and leaves no child") {
  CHECK_THROWS_AS(ChildProcess({.arguments = {}, .environment = {}, .program = "/no/such"}),
                  std::system_error);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a child may be waited for with a limit, and asked again after its end") {
  ChildProcess child(shell("exec sleep 60"));
  CHECK_FALSE(child.poll());
  CHECK_FALSE(child.wait_for(10ms));
  child.signal(SIGKILL);
  const ProcessExit end = child.wait();
  CHECK(end.signal == SIGKILL);
  CHECK(end.describe() == "was ended by signal 9 (Killed)");
  CHECK(child.poll()->signal == SIGKILL);
  child.signal(SIGTERM);  // to nobody
}

TEST_CASE("a child that ignores being asked is killed") {
  // It says that its trap is set by making a file.
  const auto ready = std::filesystem::temp_directory_path() /
                     ("batchrpc_process_test_" + std::to_string(::getpid()));
  ChildProcess child(
      shell("trap '' TERM; : > '" + ready.string() + "'; while true; do sleep 0.05; done"));
  while (!std::filesystem::exists(ready))
    std::this_thread::sleep_for(1ms);
  CHECK(child.stop(50ms).signal == SIGKILL);
  std::filesystem::remove(ready);
}

TEST_CASE("a child's destructor ends it") {
  pid_t pid = 0;
  {
    ChildProcess first(shell("exec sleep 60"));
    pid = first.pid();
    ChildProcess child = std::move(first);
    CHECK(child.pid() == pid);
    CHECK(runs(pid));
  }
  CHECK_FALSE(runs(pid));
}

TEST_CASE("many children are stopped together") {
  std::vector<ChildProcess> children;
  for (int i = 0; i < 5; ++i)
    children.emplace_back(shell("exec sleep 60"));
  stop_all(children);
  for (ChildProcess& child : children)
    CHECK(child.poll()->signal == SIGTERM);
}

TEST_CASE("a child starts with no signal blocked") {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  ChildProcess child(shell("exec sleep 60"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(child.stop(10s).signal == SIGTERM);
}

TEST_CASE("a child dies with the thread that started it") {
  pid_t pid = 0;
  {
    std::vector<ChildProcess> children;
    std::thread([&] { children.emplace_back(shell("exec sleep 60")); }).join();
    pid = children.front().pid();
    CHECK(children.front().wait_for(10s)->signal == SIGKILL);
  }
  CHECK_FALSE(runs(pid));
}

TEST_CASE("a child with no parent death signal outlives the thread that started it") {
  std::vector<ChildProcess> children;
  ProcessOptions options = shell("exec sleep 60");
  options.parent_death_signal = 0;
  std::thread([&] { children.emplace_back(options); }).join();
  CHECK_FALSE(children.front().wait_for(50ms));
}

}  // namespace process_test
}  // namespace batchrpc_examples
