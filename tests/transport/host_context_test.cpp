#include "transport/host_context.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "transport/descriptor.hpp"
#include "transport/driven.hpp"
#include "transport/guest.hpp"
#include "transport/timers.hpp"

namespace batchrpc::detail {
namespace host_context_test {

/// A loop's socket on a context, whose other end has sent something.
struct ReadableSocket {
  explicit ReadableSocket(const std::shared_ptr<Guest>& guest) {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
    descriptor = std::make_shared<Descriptor>(guest, fds[0]);
    other = fds[1];
    REQUIRE(::send(other, "x", 1, 0) == 1);
  }
  ~ReadableSocket() {
    descriptor->close();
    ::close(other);
  }
  ReadableSocket(const ReadableSocket&) = delete;
  ReadableSocket& operator=(const ReadableSocket&) = delete;

  std::shared_ptr<Descriptor> descriptor;
  int other = -1;
};

/// Loops on one context, each with a socket that something came to.
struct Guests {
  explicit Guests(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      guests.push_back(std::make_shared<Guest>(HostContext::of(io)));
      sockets.push_back(std::make_unique<ReadableSocket>(guests.back()));
    }
  }
  /// Has the sockets waited for; `handler` is given its place in the order of the events.
  template <class Handler>
  void wait_readable(Handler handler) {
    for (auto& socket : sockets) {
      socket->descriptor->wait_readable([this, &socket, handler] {
        const int number = handled++;
        socket->descriptor->close();
        handler(number);
      });
    }
  }

  asio::io_context io;
  std::vector<std::shared_ptr<Guest>> guests;
  std::vector<std::unique_ptr<ReadableSocket>> sockets;
  std::atomic<int> handled{0};
};

TEST_CASE("the loops on one context share its reactor, and have their own timers") {
  Guests loops(2);
  CHECK(HostContext::of(loops.io) == HostContext::of(loops.io));
  CHECK(&loops.guests[0]->reactor() == &loops.guests[1]->reactor());
  std::vector<int> order;
  const auto first = Timers::make(loops.guests[0]);
  const auto second = Timers::make(loops.guests[1]);
  const TimePoint now = std::chrono::steady_clock::now();
  second->schedule(now + std::chrono::milliseconds(2), [&] { order.push_back(1); });
  first->schedule(now + std::chrono::milliseconds(4), [&] { order.push_back(2); });
  loops.io.run();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("more events than a reactor tells of at once are all handed out") {
  Guests loops(300);
  loops.wait_readable([](int) {});
  loops.io.run();
  CHECK(loops.handled == 300);
}

TEST_CASE("what handlers post is run before all the events that came together are handed out") {
  Guests loops(16);
  int handled_before = 0;
  loops.wait_readable([&](int) {
    asio::post(loops.io, [&] {
      if (handled_before == 0) handled_before = loops.handled;
    });
  });
  loops.io.run();
  CHECK(loops.handled == 16);
  CHECK(handled_before == 4);
}

TEST_CASE("a handler that stops the context leaves the other events to the next run") {
  Guests loops(16);
  loops.wait_readable([&](int number) {
    if (number == 0) loops.io.stop();
  });
  loops.io.run();
  CHECK(loops.handled == 1);
  loops.io.restart();
  loops.io.run();
  CHECK(loops.handled == 16);
}

TEST_CASE("a handler that waits leaves the events that came with its own to others", "[threads]") {
  const auto threads = GENERATE(1, 2);
  const auto count = GENERATE(3, 40);
  const auto waits = [](int number) { return number % 8 == 0; };
  Guests loops(static_cast<std::size_t>(count));
  std::vector<int> ended;
  loops.wait_readable([&](int number) {
    if (waits(number)) {
      const Driven::Suspension others;
      while (loops.handled < std::min(count, number + 4))  // there may be more
        loops.io.run_one_for(std::chrono::milliseconds(1));
    }
    ended.push_back(number);
  });
  if (threads == 1) {
    loops.io.run();
  } else {
    std::thread other([&] { loops.io.run(); });
    loops.io.run();
    other.join();
  }
  REQUIRE(ended.size() == static_cast<std::size_t>(count));
  CHECK(std::find(ended.begin(), ended.end(), 0) - ended.begin() >= 2);
  if (count == 3) CHECK(ended == std::vector<int>{1, 2, 0});
  std::sort(ended.begin(), ended.end());
  CHECK(std::adjacent_find(ended.begin(), ended.end()) == ended.end());
}

TEST_CASE("a handler that throws leaves the events that came with its own to the next run") {
  const auto count = GENERATE(3, 16);
  Guests loops(static_cast<std::size_t>(count));
  loops.wait_readable([](int number) {
    if (number < 2) throw std::runtime_error("handler");
  });
  CHECK_THROWS_AS(loops.io.run(), std::runtime_error);
  CHECK(loops.handled == 1);
  CHECK_THROWS_AS(loops.io.run(), std::runtime_error);
  CHECK(loops.handled == 2);
  loops.io.run();
  CHECK(loops.handled == count);
}

TEST_CASE("of a loop that has left nothing runs, and its sockets are no work for the context") {
  Guests loops(2);
  loops.wait_readable([](int) {});
  loops.guests[0]->leave();
  loops.io.run();
  CHECK(loops.handled == 1);
  bool ran = false;
  loops.guests[0]->run([&] { ran = true; });
  CHECK_FALSE(ran);
}

TEST_CASE("a context may end while loops on it wait") {
  auto io = std::make_unique<asio::io_context>();
  const auto guest = std::make_shared<Guest>(HostContext::of(*io));
  const auto timers = Timers::make(guest);
  const auto token = std::make_shared<int>();
  {
    const ReadableSocket socket(guest);
    socket.descriptor->wait_readable([token] {});
    timers->schedule(TimePoint{}, [token] {});
    io.reset();
    guest->run([token] {});
  }
  timers->stop();
  CHECK(token.use_count() == 1);
}

TEST_CASE(
    "a forked child that destroys its copy of a context leaves its parent's events as they are") {
  auto io = std::make_unique<asio::io_context>();
  const auto guest = std::make_shared<Guest>(HostContext::of(*io));
  const auto timers = Timers::make(guest);
  const pid_t child = ::fork();
  if (child == 0) {
    io.reset();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  bool ran = false;
  timers->schedule(std::chrono::steady_clock::now(), [&ran] { ran = true; });
  io->run_for(std::chrono::seconds(10));
  CHECK(ran);
}

}  // namespace host_context_test
}  // namespace batchrpc::detail
