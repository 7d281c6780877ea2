#include "transport/reactor.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "transport/descriptor.hpp"
#include "transport/timers.hpp"

namespace batchrpc::detail {
namespace reactor_test {

using std::chrono::milliseconds;

/// Runs all at once, or keeps it; and counts.
struct CountingSite final : Site {
  CountingSite() : Site(std::make_shared<Reactor>()) {}
  void run(Task task) override {
    if (keeping) {
      kept.push_back(std::move(task));
    } else {
      task();
    }
  }
  void hold() override { ++holds; }
  void release() override { --holds, ++releases; }
  bool keeping = false;
  std::vector<Task> kept;
  int holds = 0;
  int releases = 0;
};

/// One end of a pair of sockets, in a reactor that this thread drives; `other` is the other end.
struct End {
  End() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
    descriptor = std::make_shared<Descriptor>(site, fds[0]);
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

  /// What there is now, or comes next.
  std::vector<epoll_event> events(bool may_sleep = false) const {
    std::vector<epoll_event> found(16);
    found.resize(site->reactor().wait(found, may_sleep));
    return found;
  }
  /// Dispatches it; how many events.
  std::size_t turn(bool may_sleep = false) const {
    const auto found = events(may_sleep);
    for (const epoll_event& event : found)
      site->reactor().dispatch(event);
    return found.size();
  }
  void wait_readable() {
    descriptor->wait_readable([this] { ++readable; });
  }
  void wait_writable() {
    descriptor->wait_writable([this] { ++writable; });
  }

  const std::shared_ptr<CountingSite> site = std::make_shared<CountingSite>();
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
  const auto successor = std::make_shared<Descriptor>(end.site, fds[0]);
  successor->wait_readable([&] { ++successors; });
  end.site->reactor().dispatch(taken[0]);
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

TEST_CASE("the bell makes a sleeping reactor return, once") {
  Reactor reactor;
  std::array<epoll_event, 4> events{};
  reactor.ring();
  REQUIRE(reactor.wait(events, true) == 1);
  reactor.dispatch(events[0]);
  CHECK(reactor.wait(events, false) == 0);
}

TEST_CASE("an alarm makes a sleeping reactor return, and what is due run") {
  End end;
  const auto timers = Timers::make(end.site);
  int ran = 0;
  for (int i = 1; i <= 2; ++i) {
    timers->schedule(std::chrono::steady_clock::now() + milliseconds(1), [&ran] { ++ran; });
    while (ran < i)
      end.turn(true);
    CHECK(end.turn() == 0);
  }
  timers->schedule(TimePoint{}, [&ran] { ++ran; });  // long ago
  CHECK(end.turn(true) == 1);
  CHECK(ran == 3);
}

TEST_CASE("a timer that throws leaves the others to the next alarm, and holds nothing") {
  End end;
  const auto timers = Timers::make(end.site);
  bool ran = false;
  timers->schedule(TimePoint{}, [] { throw std::runtime_error("timer"); });
  timers->schedule(TimePoint{} + milliseconds(1), [&ran] { ran = true; });
  CHECK_THROWS_AS(end.turn(true), std::runtime_error);
  CHECK_FALSE(ran);
  CHECK(end.site->holds == 1);
  end.turn(true);
  CHECK(ran);
  CHECK(end.site->holds == 0);
}

TEST_CASE("who closes a socket before its event has its turn is not told of it") {
  End end;
  end.wait_readable();
  end.send(1);
  end.site->keeping = true;
  end.turn();
  std::vector<Task> kept = std::exchange(end.site->kept, {});
  REQUIRE(kept.size() == 1);
  end.descriptor->close();
  kept[0]();
  CHECK(end.readable == 0);
}

TEST_CASE("a site is held while a socket or an alarm is waited for") {
  End end;
  const auto timers = Timers::make(end.site);
  CHECK(end.site->holds == 0);
  end.wait_readable();
  CHECK(end.site->holds == 1);
  timers->schedule(TimePoint{}, [] {});
  timers->schedule(TimePoint{}, [] {});
  CHECK(end.site->holds == 2);
  end.descriptor->close();
  CHECK(end.site->holds == 1);
  end.turn(true);  // the alarm
  CHECK(end.site->holds == 0);

  SECTION("by a timer that sets itself anew, all the time") {
    const TimePoint later = std::chrono::steady_clock::now() + std::chrono::hours(1);
    timers->schedule(TimePoint{}, [&] { timers->schedule(later, [] {}); });
    end.turn(true);
    CHECK(end.site->holds == 1);
    CHECK(end.site->releases == 2);
  }
}

}  // namespace reactor_test
}  // namespace batchrpc::detail
