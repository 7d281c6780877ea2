#include "transport/socket_options.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "transport/descriptor.hpp"
#include "transport/guest.hpp"
#include "transport/owned_fd.hpp"
#include "transport/socket_stream.hpp"

using batchrpc::detail::OwnedFd;
using batchrpc::detail::set_options;

namespace socket_options_test {

int option_of(int fd, int level, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  REQUIRE(::getsockopt(fd, level, option, &value, &size) == 0);
  return value;
}

std::string congestion_control_of(int fd) {
  char name[16] = {};
  socklen_t size = sizeof name;
  REQUIRE(::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0);
  return name;
}

struct Connected {
  OwnedFd one;
  OwnedFd other;
};

/// A socket, bound to `from`, that has connected with another at `to`; -1 where the system has no
/// such addresses.
template <class Address>
Connected connect(Address from, Address to) {
  const int family = reinterpret_cast<const sockaddr&>(to).sa_family;
  const OwnedFd listening(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof to;
  auto* const address = reinterpret_cast<sockaddr*>(&to);
  if (::bind(listening.get(), address, size) != 0) return {OwnedFd(-1), OwnedFd(-1)};
  REQUIRE(::listen(listening.get(), 1) == 0);
  REQUIRE(::getsockname(listening.get(), address, &size) == 0);
  const int one = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(one, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0);
  REQUIRE(::connect(one, address, size) == 0);
  return {OwnedFd(one), OwnedFd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC))};
}

sockaddr_in v4(const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  REQUIRE(::inet_pton(AF_INET, text, &address.sin_addr) == 1);
  return address;
}

/// Than reno; where it is allowed.
void choose_another(int fd) {
  constexpr char kOther[] = "cubic";
  ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kOther, sizeof kOther - 1);
}

TEST_CASE("a stream over a socket sets its options") {
  const Connected pair = connect(v4("127.0.0.1"), v4("127.0.0.1"));
  asio::io_context io;
  const auto guest =
      std::make_shared<batchrpc::detail::Guest>(batchrpc::detail::HostContext::of(io));
  const int fd = ::dup(pair.one.get());
  const batchrpc::detail::SocketStream stream(
      nullptr, std::make_shared<batchrpc::detail::Descriptor>(guest, fd), "other");
  CHECK(option_of(fd, IPPROTO_TCP, TCP_NODELAY) != 0);
}

TEST_CASE("TCP sends at once, and takes little that it cannot send yet") {
  const Connected pair = connect(v4("127.0.0.1"), v4("127.0.0.1"));
  for (const int fd : {pair.one.get(), pair.other.get()}) {
    set_options(fd);
    CHECK(option_of(fd, IPPROTO_TCP, TCP_NODELAY) != 0);
    CHECK(option_of(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT) == 32 * 1024);
  }
}

TEST_CASE("TCP between two sockets of one address is by reno") {
  const auto check = [](const Connected& pair) {
    for (const int fd : {pair.one.get(), pair.other.get()}) {
      choose_another(fd);
      set_options(fd);
      CHECK(congestion_control_of(fd) == "reno");
    }
  };
  check(connect(v4("127.0.0.1"), v4("127.0.0.1")));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const Connected pair = connect(loopback, loopback);
  if (pair.one.get() >= 0) check(pair);
}

TEST_CASE("TCP between two addresses is left to the system's congestion control") {
  const Connected pair = connect(v4("127.0.0.2"), v4("127.0.0.1"));
  choose_another(pair.one.get());
  const std::string before = congestion_control_of(pair.one.get());
  set_options(pair.one.get());
  CHECK(congestion_control_of(pair.one.get()) == before);
}

TEST_CASE("a Unix socket takes 1 MiB at once, or what the system allows") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  const Connected pair{OwnedFd(fds[0]), OwnedFd(fds[1])};
  constexpr int kSmall = 16 * 1024;
  constexpr int kLarge = 1024 * 1024;  // or what the system allows
  ::setsockopt(pair.one.get(), SOL_SOCKET, SO_SNDBUF, &kSmall, sizeof kSmall);
  ::setsockopt(pair.other.get(), SOL_SOCKET, SO_SNDBUF, &kLarge, sizeof kLarge);
  set_options(pair.one.get());
  CHECK(option_of(pair.one.get(), SOL_SOCKET, SO_SNDBUF) ==
        option_of(pair.other.get(), SOL_SOCKET, SO_SNDBUF));
}

}  // namespace socket_options_test
