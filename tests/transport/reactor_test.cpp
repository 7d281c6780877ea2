#include "transport/reactor.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "transport/descriptor.hpp"

namespace batchrpc::detail {
namespace {

using std::chrono::milliseconds;

/// One end of a pair of sockets, in a reactor that this thread drives; `other` is the other end.
struct End {
  End() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
    descriptor = std::make_shared<Descriptor>(reactor, fds[0]);
    other = fds[1];
  }
  ~End() { close_other(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void close_other() {
    if (other >= 0) ::close(std::exchange(other, -1));
  }
  void send(std::size_t bytes) const {
    const std::vector<char> sent(bytes, 'x');
    REQUIRE(::send(other, sent.data(), bytes, 0) == static_cast<ssize_t>(bytes));
  }
  /// As a stream does.
  ssize_t read(std::size_t want) const {
    std::vector<char> into(want);
    descriptor->expect_drained();
    const ssize_t got = ::recv(descriptor->fd(), into.data(), want, 0);
    if (got == static_cast<ssize_t>(want)) descriptor->not_drained();
    return got;
  }
  /// Writes until there is no room.
  void fill() const {
    const std::vector<char> bytes(16 * 1024);
    while (::send(descriptor->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size())) {
    }
    descriptor->expect_full();
  }
  void empty_other() const {
    std::vector<char> into(1024 * 1024);
    while (::recv(other, into.data(), into.size(), 0) > 0) {
    }
  }

  /// What there is now.
  std::vector<epoll_event> events() const {
    std::vector<epoll_event> found(16);
    found.resize(reactor->wait(found, false));
    return found;
  }
  /// Dispatches it; how many events.
  std::size_t turn() const {
    const auto found = events();
    for (const epoll_event& event : found)
      reactor->dispatch(event);
    return found.size();
  }
  void wait_readable() {
    descriptor->wait_readable([this] { ++readable; });
  }
  void wait_writable() {
    descriptor->wait_writable([this] { ++writable; });
  }

  const std::shared_ptr<Reactor> reactor = std::make_shared<Reactor>();
  std::shared_ptr<Descriptor> descriptor;
  int other = -1;
  int readable = 0;
  int writable = 0;
};

TEST_CASE("what came before the first wait is told of, once") {
  End end;
  end.send(1);
  CHECK(end.turn() == 0);
  end.wait_readable();
  end.turn();
  CHECK(end.readable == 1);
  end.send(1);
  end.turn();
  CHECK(end.readable == 1);
}

TEST_CASE("a wait after a read that may have left something is told of it") {
  End end;
  end.wait_readable();
  end.send(10);
  end.turn();
  CHECK(end.read(4) == 4);
  end.wait_readable();
  end.turn();
  CHECK(end.readable == 2);

  SECTION("and one that waits without having read is, too") {
    end.wait_readable();
    end.turn();
    CHECK(end.readable == 3);
  }
  SECTION("and one that has read all is not") {
    CHECK(end.read(100) == 6);
    end.wait_readable();
    CHECK(end.turn() == 0);
    end.send(1);
    end.turn();
    CHECK(end.readable == 3);
  }
}

TEST_CASE("what comes between a read and the wait for more is told of") {
  End end;
  end.wait_readable();
  end.send(1);
  end.turn();
  CHECK(end.read(100) == 1);
  end.send(1);
  SECTION("when the event came first") {
    CHECK(end.turn() == 1);
    CHECK(end.readable == 1);
    end.wait_readable();
    end.turn();
    CHECK(end.readable == 2);
  }
  SECTION("when the wait came first") {
    end.wait_readable();
    end.turn();
    CHECK(end.readable == 2);
  }
}

TEST_CASE("an end that came together with the last bytes is told of after them") {
  End end;
  end.wait_readable();
  end.send(1);
  end.close_other();
  end.turn();
  CHECK(end.read(100) == 1);
  end.wait_readable();
  end.turn();
  CHECK(end.readable == 2);
  CHECK(end.read(100) == 0);
  end.wait_readable();  // whoever did not see it is told again
  end.turn();
  CHECK(end.readable == 3);
}

TEST_CASE("room to write is told of when there is some, and no events come when nobody waits") {
  End end;
  end.wait_writable();
  end.turn();
  CHECK(end.writable == 1);
  end.fill();
  end.wait_writable();
  CHECK(end.turn() == 0);
  end.empty_other();
  end.turn();
  CHECK(end.writable == 2);

  end.fill();
  end.empty_other();
  end.turn();  // nobody waited: the last event of this kind
  end.fill();
  end.empty_other();
  CHECK(end.turn() == 0);
  end.wait_writable();
  end.turn();
  CHECK(end.writable == 3);
}

TEST_CASE("both handlers are called when both are ready, writing first") {
  End end;
  std::vector<int> order;
  end.fill();
  end.descriptor->wait_writable([&] { order.push_back(1); });
  end.descriptor->wait_readable([&] { order.push_back(2); });
  end.send(1);
  end.empty_other();
  end.turn();
  CHECK(order == std::vector<int>{1});
  end.turn();  // reading has an event of its own, also when the other handler waits or throws
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("a handler that closes its descriptor destroys the other one") {
  End end;
  auto token = std::make_shared<int>();
  int called = 0;
  end.descriptor->wait_writable([&] { end.descriptor->close(); });
  end.descriptor->wait_readable([&, token] { ++called; });
  end.send(1);
  end.turn();
  end.turn();
  CHECK(called == 0);
  CHECK(token.use_count() == 1);
}

TEST_CASE(
    "an event that was taken before its descriptor closed goes to nobody, nor to its successor") {
  End end;
  end.wait_readable();
  end.send(1);
  const auto taken = end.events();
  REQUIRE(taken.size() == 1);
  end.descriptor->close();
  int successors = 0;
  std::array<int, 2> fds{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
  const auto successor = std::make_shared<Descriptor>(end.reactor, fds[0]);
  successor->wait_readable([&] { ++successors; });
  end.reactor->dispatch(taken[0]);
  CHECK(end.readable == 0);
  CHECK(successors == 0);
  ::close(fds[1]);
  end.turn();
  CHECK(successors == 1);
}

TEST_CASE("a socket that a child still has open is told of to nobody once it is closed here") {
  End end;
  end.wait_readable();
  end.turn();
  const int childs = ::dup(end.descriptor->fd());
  end.descriptor->close();
  end.send(1);
  end.turn();
  CHECK(end.readable == 0);
  ::close(childs);
}

TEST_CASE("the alarm and the bell make a sleeping reactor return") {
  Reactor reactor;
  std::array<epoll_event, 4> events{};
  reactor.ring();
  REQUIRE(reactor.wait(events, true) == 1);
  CHECK_FALSE(reactor.dispatch(events[0]));
  CHECK(reactor.wait(events, false) == 0);
  for (int i = 0; i < 2; ++i) {
    reactor.set_alarm(std::chrono::steady_clock::now() + milliseconds(1));
    REQUIRE(reactor.wait(events, true) == 1);
    CHECK(reactor.dispatch(events[0]));
    CHECK(reactor.wait(events, false) == 0);
  }
  reactor.set_alarm(TimePoint{});  // long ago
  CHECK(reactor.wait(events, true) == 1);
}

TEST_CASE("a reactor says when it has something to wait for") {
  End end;
  std::vector<bool> told;
  end.reactor->on_use([&](bool used) { told.push_back(used); });
  end.wait_readable();
  end.reactor->set_alarm(TimePoint{});
  CHECK(told == std::vector<bool>{true});
  end.descriptor->close();
  CHECK(told == std::vector<bool>{true});
  end.turn();  // the alarm
  CHECK(told == std::vector<bool>{true, false});
  end.reactor->set_alarm(TimePoint{});
  CHECK(told == std::vector<bool>{true, false, true});
}

}  // namespace
}  // namespace batchrpc::detail
