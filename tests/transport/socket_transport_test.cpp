// What only sockets do: files, names, descriptors, ports.
#include "batchrpc/transport/tcp_address.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/error.hpp"
#include "fabrics.hpp"
#include "few_descriptors.hpp"
#include "sanitizers.hpp"
#include "transport/owned_fd.hpp"
#include "transport/socket_address.hpp"

namespace batchrpc::test {
namespace socket_transport_test {

using std::chrono::milliseconds;

bool exists(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

/// Leaves a socket file behind, as a process does that is killed.
void leave_socket_file(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
}

TEST_CASE("a Unix socket's file goes with its listener", "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  const Address address = fabric.address();
  {
    const Accepting accepting(fabric, address);
    CHECK(exists(address.name()));
  }
  CHECK_FALSE(exists(address.name()));
}

TEST_CASE("the socket file of a process that has ended is replaced", "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  const Address address = fabric.address();
  leave_socket_file(address.name());
  CHECK(connect(fabric, address).second == std::errc::connection_refused);
  Accepting accepting(fabric, address);
  CHECK(accepting.connect().server != nullptr);
}

TEST_CASE("a file that is no socket is left alone", "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  const Address address = fabric.address();
  std::ofstream(address.name()) << "precious";
  CHECK_THROWS_AS(Accepting(fabric, address), JoinFailed);
  CHECK(exists(address.name()));
  ::unlink(address.name().c_str());
}

TEST_CASE("a listener does not remove the file of its successor", "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  const Address address = fabric.address();
  auto first = std::make_unique<Accepting>(fabric, address);
  ::unlink(address.name().c_str());
  const Accepting second(fabric, address);
  first.reset();
  CHECK(exists(address.name()));
}

TEST_CASE("a listener in a folder that is not there says so", "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  CHECK_THROWS_WITH(Accepting(fabric, Address::parse("unix:///tmp/no-such-folder/socket")),
                    Catch::Contains("folder does not exist"));
}

TEST_CASE("a Unix socket that is not there refuses, and a file that is missing is told as such",
          "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  const std::error_code error = connect(fabric, fabric.address()).second;
  CHECK(error == std::errc::connection_refused);
  CHECK(error.message() == "the socket file does not exist");
  CHECK(connect(fabric, free_address("unix-abstract")).second == std::errc::connection_refused);
}

TEST_CASE("TCP listens on and connects to names and IPv6 addresses", "[threads]") {
  const Fabric fabric = socket_fabric("tcp");
  Accepting by_name(fabric, Address::parse("tcp://localhost:0"));
  const TcpAddress listens = TcpAddress::of(by_name.address());
  CHECK(listens.host == "localhost");
  CHECK(listens.port != 0);
  Pair pair = by_name.connect();
  CHECK(pair.client->local_address().scheme() == "tcp");

  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_ipv6 = probe >= 0 && ::bind(probe, reinterpret_cast<const sockaddr*>(&loopback),
                                             sizeof loopback) == 0;
  if (probe >= 0) ::close(probe);
  if (!has_ipv6) return;
  Accepting v6(fabric, Address::parse("tcp://[::1]:0"));
  pair = v6.connect();
  CHECK(TcpAddress::of(pair.client->local_address()).host == "::1");
}

TEST_CASE("an address of another machine cannot be listened on", "[threads]") {
  const Fabric fabric = socket_fabric("tcp");
  CHECK_THROWS_WITH(Accepting(fabric, Address::parse("tcp://192.0.2.1:0")),
                    Catch::Contains("not an address of this machine"));
}

TEST_CASE("a name that nobody knows is told as such, not as a lack of a route", "[threads]") {
  const Fabric fabric = socket_fabric("tcp");
  std::error_code error;
  Waiter waiter;
  fabric.client->connect(TcpAddress{.host = "no-such-host.invalid", .port = 1}.address(),
                         fabric.client_loop->now() + milliseconds(2000),
                         [&](std::unique_ptr<Stream>, std::error_code result) {
                           error = result;
                           waiter.notify();
                         });
  wait_for(fabric.waiting(), waiter);
  CAPTURE(error.message());
  const std::string category = error.category().name();
  CHECK((category == "getaddrinfo" || error == std::errc::timed_out));
  CHECK_THROWS_AS(Accepting(fabric, Address::parse("tcp://no-such-host.invalid:0")), JoinFailed);
}

TEST_CASE("a connect that gets no answer ends at its deadline", "[threads]") {
  for (const std::string scheme : {"tcp", "unix-abstract"}) {
    const Fabric fabric = socket_fabric(scheme);
    // A listener that never accepts, with a backlog of one or two connections.
    const bool tcp = scheme == "tcp";
    const int fd = ::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    Address address = fabric.address();
    if (tcp) {
      sockaddr_in any{};
      any.sin_family = AF_INET;
      any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t size = sizeof any;
      REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&any), size) == 0);
      REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &size) == 0);
      address = TcpAddress{.host = "127.0.0.1", .port = ntohs(any.sin_port)}.address();
    } else {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::memcpy(name.sun_path + 1, address.name().data(), address.name().size());
      const auto size = static_cast<socklen_t>(sizeof name.sun_family + 1 + address.name().size());
      REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&name), size) == 0);
    }
    REQUIRE(::listen(fd, 0) == 0);

    std::vector<std::unique_ptr<Stream>> streams;
    std::error_code error;
    for (int i = 0; i < 10 && !error; ++i) {
      Waiter waiter;
      const TimePoint deadline = fabric.client_loop->now() + milliseconds(100);
      fabric.client->connect(address, deadline,
                             [&](std::unique_ptr<Stream> stream, std::error_code result) {
                               streams.push_back(std::move(stream));
                               error = result;
                               waiter.notify();
                             });
      wait_for(fabric.waiting(), waiter);
      if (error) CHECK(fabric.client_loop->now() >= deadline);
    }
    CHECK(error == std::errc::timed_out);
    ::close(fd);
  }
}

TEST_CASE("a deadline that has passed ends a connect without a try", "[threads]") {
  const Fabric fabric = socket_fabric("tcp");
  const Accepting accepting(fabric);
  std::error_code error;
  Waiter waiter;
  fabric.client->connect(accepting.address(), fabric.client_loop->now() - milliseconds(1),
                         [&](std::unique_ptr<Stream>, std::error_code result) {
                           error = result;
                           waiter.notify();
                         });
  wait_for(fabric.waiting(), waiter);
  CHECK(error == std::errc::timed_out);
}

/// TCP whose server keeps the lines that it logs.
struct LoggingServer {
  LoggingServer() {
    fabric.server_loop = SocketLoop::start();
    fabric.server = std::make_shared<TcpTransport>(
        std::static_pointer_cast<SocketLoop>(fabric.server_loop),
        Log(LogLevel::warning, [this](LogLevel, std::string_view line) {
          const std::lock_guard lock(mutex);
          logged.emplace_back(line);
        }));
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex);
    return logged;
  }

  std::mutex mutex;
  std::vector<std::string> logged;
  Fabric fabric = socket_fabric("tcp");
};

TEST_CASE("without descriptors accepting pauses, and goes on when there are some again",
          "[threads]") {
  const Fabric fabric = socket_fabric("unix-abstract");
  Accepting accepting(fabric);
  accepting.connect();

  const auto let_it_run = [&] {
    Countdown passed(1);
    fabric.server_loop->post([&] { passed.arrive(); });
    passed.wait(fabric.waiting());
  };
  let_it_run();  // UBSan opens a pipe when it looks at an object of a type that it has not seen yet

  const int client = ::socket(AF_UNIX, SOCK_STREAM, 0);
  std::optional<NoDescriptors> none(std::in_place);

  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = accepting.address().name();
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  const auto size = static_cast<socklen_t>(sizeof name.sun_family + 1 + text.size());
  const int connected = ::connect(client, reinterpret_cast<const sockaddr*>(&name), size);
  let_it_run();

  none.reset();
  CHECK(connected == 0);
  CHECK(accepting.accept() != nullptr);
  ::close(client);
}

#if !BATCHRPC_TEST_ASAN  // UBSan itself opens a pipe when it looks at an object of a new type
TEST_CASE("without descriptors for long, those who connect are turned away, and the log tells",
          "[threads]") {
  LoggingServer logging;
  Fabric& fabric = logging.fabric;
  Accepting accepting(fabric);
  accepting.connect();
  std::error_code ignored;
  const detail::OwnedFd client(detail::make_socket(AF_INET, ignored));
  detail::SocketAddress at;
  REQUIRE(detail::numeric_address(TcpAddress::of(accepting.address()), at));

  pollfd closed{.fd = client.get(), .events = POLLIN, .revents = 0};
  {
    const NoDescriptors none;
    ::connect(client.get(), at.get(), at.size);
    constexpr int kMilliseconds = 10'000;
    CHECK(::poll(&closed, 1, kMilliseconds) == 1);
    char byte = 0;
    CHECK(::read(client.get(), &byte, 1) <= 0);
  }
  const std::vector<std::string> lines = logging.lines();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("256") && Catch::Contains("ulimit -n"));
  CHECK(accepting.connect().server != nullptr);
}
#endif

TEST_CASE("strangers cannot take all descriptors of a process, and the log tells", "[threads]") {
  LoggingServer logging;
  Fabric& fabric = logging.fabric;
  Accepting accepting(fabric);
  const FewDescriptors few(256);  // both sides are in this process
  const auto most = static_cast<std::size_t>(256 / 4 * 3);
  std::vector<std::unique_ptr<Stream>> kept;
  while (kept.size() < most) {
    Pair pair = accepting.connect();
    kept.push_back(std::move(pair.server));  // the client's end is closed
  }
  Ends ends(fabric);
  for (int i = 0; i < 3; ++i) {
    const auto [stream, error] = connect(fabric, accepting.address());
    REQUIRE(stream != nullptr);
    CHECK(ends.read(*stream, 1).empty());
  }
  const std::vector<std::string> lines = logging.lines();
  REQUIRE(lines.size() == 1);  // not one for each
  CHECK_THAT(lines[0], Catch::Contains("refused a connection of tcp://127.0.0.1:") &&
                           Catch::Contains("192 connections") && Catch::Contains("ulimit -n"));
  kept.pop_back();
  CHECK(accepting.connect().server != nullptr);
}

TEST_CASE("a listener may be destroyed while its loop accepts", "[threads]") {
  const Fabric fabric = socket_fabric("unix-abstract");
  for (int round = 0; round < 300; ++round) {
    std::atomic<bool> accepts{false};
    auto listener =
        fabric.server->listen(fabric.address(), [&](std::unique_ptr<Stream>) { accepts = true; });
    Countdown connected(1);
    fabric.client->connect(listener->address(), fabric.soon(),
                           [&](std::unique_ptr<Stream>, std::error_code) { connected.arrive(); });
    while (!accepts)  // the loop is about to wait for the next one
      std::this_thread::yield();
    listener.reset();
    connected.wait(fabric.waiting());
  }
  Accepting accepting(fabric);
  CHECK(accepting.connect().server != nullptr);
}

TEST_CASE("a write to a peer that is gone raises no signal", "[threads]") {
  static std::atomic<int> signals{0};
  const auto before = std::signal(SIGPIPE, [](int) { ++signals; });
  const Fabric fabric = socket_fabric("unix-abstract");
  Accepting accepting(fabric);
  Pair pair = accepting.connect();
  pair.server.reset();
  const std::byte byte{};
  const std::span<const std::byte> one(&byte, 1);
  IoResult result;
  while (!result.error)
    result = pair.client->try_write({&one, 1});
  const std::vector<std::span<const std::byte>> two{one, one};
  CHECK(pair.client->try_write(two).error);
  CHECK(signals == 0);
  std::signal(SIGPIPE, before);
}

TEST_CASE("a wait for room to write does not disturb a wait for something to read", "[threads]") {
  const Fabric fabric = socket_fabric("tcp");
  Ends ends(fabric);
  Accepting accepting(fabric);
  Pair pair = accepting.connect();
  Signal readable;
  pair.client->wait_readable([&] { readable.set(); });
  const auto big = pattern(8 * 1024 * 1024, 1);
  CHECK(ends.transfer(*pair.client, *pair.server, big).size() == big.size());
  ends.write_all(*pair.server, as_bytes("x"));
  readable.wait(fabric.waiting());
  CHECK(ends.read(*pair.client, 1).size() == 1);
}

}  // namespace socket_transport_test
}  // namespace batchrpc::test
