#include "transport/resolver.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>
#include <future>
#include <vector>

namespace batchrpc::detail {
namespace {

std::uint16_t port_of(const SocketAddress& address) {
  return address.family() == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

TEST_CASE(
    "names are found with their ports, in the order of asking, after the resolver's end too") {
  std::vector<std::promise<Resolver::Found>> promises(3);
  {
    Resolver resolver;
    std::uint16_t port = 1;
    for (auto& promise : promises) {
      resolver.resolve("localhost", port++,
                       [&promise](Resolver::Found found) { promise.set_value(std::move(found)); });
    }
  }
  std::uint16_t port = 1;
  for (auto& promise : promises) {
    const Resolver::Found found = promise.get_future().get();
    CHECK_FALSE(found.error);
    REQUIRE_FALSE(found.addresses.empty());
    for (const SocketAddress& address : found.addresses)
      CHECK(port_of(address) == port);
    ++port;
  }
}

TEST_CASE("a name that cannot be one is an error that says so") {
  Resolver resolver;
  std::promise<Resolver::Found> promise;
  resolver.resolve(std::string(300, 'x'), 1,
                   [&](Resolver::Found found) { promise.set_value(std::move(found)); });
  const Resolver::Found found = promise.get_future().get();
  CHECK(found.addresses.empty());
  CHECK(found.error.category().name() == std::string("getaddrinfo"));
  CHECK_FALSE(found.error.message().empty());
}

}  // namespace
}  // namespace batchrpc::detail
