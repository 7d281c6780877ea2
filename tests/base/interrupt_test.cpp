#include "batchrpc/base/interrupt.hpp"
#include "batchrpc/base/error.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <future>
#include <stdexcept>
#include <thread>

namespace batchrpc {
namespace interrupt_test {

using namespace std::chrono_literals;

// Runs `body` in a process of its own, as it ends by a signal; gives waitpid's status.
template <typename Body>
int status_of_child(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST_CASE("an interrupt becomes a call, once", "[threads]") {
  const int number = GENERATE(SIGINT, SIGTERM);
  std::promise<int> received;
  InterruptHandler handler([&](int signal) { received.set_value(signal); });
  ::kill(::getpid(), number);
  std::future<int> result = received.get_future();
  REQUIRE(result.wait_for(10s) == std::future_status::ready);
  CHECK(result.get() == number);
}

TEST_CASE("the destructor waits for the call under way", "[threads]") {
  std::promise<void> begun;
  bool ended = false;
  {
    InterruptHandler handler([&](int) {
      begun.set_value();
      std::this_thread::sleep_for(20ms);
      ended = true;
    });
    ::kill(::getpid(), SIGINT);
    begun.get_future().wait();
  }
  CHECK(ended);
}

TEST_CASE("without an interrupt nothing is called, and the signals are handled as before",
          "[threads]") {
  bool called = false;
  struct sigaction during {};
  struct sigaction after {};
  {
    InterruptHandler handler([&](int) { called = true; });
    ::sigaction(SIGINT, nullptr, &during);
  }
  ::sigaction(SIGINT, nullptr, &after);
  CHECK_FALSE(called);
  CHECK(during.sa_handler != after.sa_handler);
  InterruptHandler again([](int) {});
}

TEST_CASE("a process has one interrupt handler at a time", "[threads]") {
  InterruptHandler handler([](int) {});
  CHECK_THROWS_AS(InterruptHandler([](int) {}), InvalidArgument);
}

TEST_CASE("of two different interrupts the first is told", "[threads]") {
  std::promise<int> received;
  {
    InterruptHandler handler([&](int signal) { received.set_value(signal); });
    ::kill(::getpid(), SIGTERM);
    ::kill(::getpid(), SIGINT);
  }
  CHECK(received.get_future().get() == SIGTERM);
}

TEST_CASE("the second interrupt ends the process") {
  const int status = status_of_child([] {
    std::promise<void> begun;
    InterruptHandler handler([&](int) {
      begun.set_value();
      std::this_thread::sleep_for(60s);
    });
    ::kill(::getpid(), SIGINT);
    begun.get_future().wait();
    ::kill(::getpid(), SIGINT);
    std::this_thread::sleep_for(60s);
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

}  // namespace interrupt_test
}  // namespace batchrpc
