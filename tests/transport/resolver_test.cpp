#include "transport/resolver.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace batchrpc::detail {
namespace resolver_test {

std::uint16_t port_of(const SocketAddress& address) {
  return address.family() == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

TEST_CASE("names are found with their ports, in the order of asking", "[threads]") {
  std::vector<std::promise<FoundAddresses>> promises(3);
  const auto asker = std::make_shared<int>();
  Resolver resolver;
  std::uint16_t port = 1;
  for (auto& promise : promises) {
    resolver.resolve(asker, "localhost", port++,
                     [&promise](FoundAddresses found) { promise.set_value(std::move(found)); });
  }
  port = 1;
  for (auto& promise : promises) {
    const FoundAddresses found = promise.get_future().get();
    CHECK_FALSE(found.error);
    REQUIRE_FALSE(found.addresses.empty());
    for (const SocketAddress& address : found.addresses)
      CHECK(port_of(address) == port);
    ++port;
  }
}

TEST_CASE("a name is passed over when its asker has gone, or the resolver has stopped",
          "[threads]") {
  const auto asker = std::make_shared<int>();
  auto gone = std::make_shared<int>();
  const auto called = std::make_shared<int>(0);
  std::promise<void> begun;
  std::promise<void> go_on;
  std::promise<void> last;
  Resolver resolver;
  resolver.resolve(asker, "127.0.0.1", 1, [&](const FoundAddresses&) {
    begun.set_value();
    go_on.get_future().wait();
  });
  begun.get_future().wait();
  resolver.resolve(gone, "127.0.0.1", 1, [called](const FoundAddresses&) { ++*called; });
  resolver.resolve(asker, "127.0.0.1", 1, [&](const FoundAddresses&) { last.set_value(); });
  gone.reset();
  go_on.set_value();
  last.get_future().wait();
  CHECK(*called == 0);

  resolver.stop();
  resolver.resolve(asker, "127.0.0.1", 1, [called](const FoundAddresses&) { ++*called; });
  while (called.use_count() > 1)
    std::this_thread::yield();
  CHECK(*called == 0);
}

TEST_CASE("names that are found slowly do not delay others, and few threads look for them",
          "[threads]") {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  const auto find = [&](const std::string& name, std::uint16_t /*port*/) {
    const int now = ++at_once;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    if (name == "slow") answered.wait();
    --at_once;
    return FoundAddresses{};
  };
  const auto asker = std::make_shared<int>();
  std::promise<void> fast;
  constexpr int kSlow = 20;
  std::promise<void> all;
  std::atomic<int> left{kSlow};
  Resolver resolver(find);
  const auto slow_found = [&](const FoundAddresses&) {
    if (--left == 0) all.set_value();
  };
  for (int i = 1; i < Resolver::kMostThreads; ++i)
    resolver.resolve(asker, "slow", 1, slow_found);
  resolver.resolve(asker, "fast", 1, [&](const FoundAddresses&) { fast.set_value(); });
  fast.get_future().wait();  // although the others still wait
  for (int i = Resolver::kMostThreads; i <= kSlow; ++i)
    resolver.resolve(asker, "slow", 1, slow_found);
  answer.set_value();
  all.get_future().wait();
  CHECK(most <= Resolver::kMostThreads);
}

TEST_CASE("a name that cannot be one is an error that says so", "[threads]") {
  const auto asker = std::make_shared<int>();
  std::promise<FoundAddresses> promise;
  Resolver resolver;
  resolver.resolve(asker, std::string(300, 'x'), 1,
                   [&](FoundAddresses found) { promise.set_value(std::move(found)); });
  const FoundAddresses found = promise.get_future().get();
  CHECK(found.addresses.empty());
  CHECK(found.error.category().name() == std::string("getaddrinfo"));
  CHECK_FALSE(found.error.message().empty());
}

}  // namespace resolver_test
}  // namespace batchrpc::detail
