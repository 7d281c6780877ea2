#include "transport/accept_limits.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/transport/tcp_address.hpp"
#include "few_descriptors.hpp"

namespace batchrpc::detail {
namespace accept_limits_test {

SocketAddress address_of(const std::string& host, std::uint16_t port = 4000) {
  SocketAddress address;
  REQUIRE(numeric_address(TcpAddress{.host = host, .port = port}, address));
  return address;
}

using Places = std::vector<std::shared_ptr<void>>;

/// Connects from `host` until it is refused. Returns why.
std::string fill(AcceptLimits& limits, const std::string& host, Places& places) {
  const SocketAddress own = address_of("10.0.0.1");
  while (true) {
    AcceptLimits::Admission admission = limits.admit(own, address_of(host));
    if (!admission.place) return admission.refusal;
    places.push_back(std::move(admission.place));
  }
}

TEST_CASE("One machine gets three eighths of the descriptors, and all together three quarters") {
  const test::FewDescriptors few(64);
  const auto limits = std::make_shared<AcceptLimits>();
  Places first;
  const std::string refusal = fill(*limits, "10.0.0.2", first);
  CHECK(first.size() == 24);
  CHECK_THAT(refusal, Catch::Contains("24 connections from this address") &&
                          Catch::Contains("64 descriptors") && Catch::Contains("ulimit -n"));
  Places second;
  fill(*limits, "10.0.0.3", second);
  CHECK(second.size() == 24);
  Places third;
  CHECK_THAT(fill(*limits, "10.0.0.4", third), Catch::Contains("48 connections"));
  CHECK(third.empty());

  first.clear();
  fill(*limits, "10.0.0.4", third);
  CHECK(third.size() == 24);
}

TEST_CASE("The connections of this machine count only in all") {
  const test::FewDescriptors few(64);
  for (const char* const here : {"127.0.0.1", "127.3.4.5", "::1", "10.0.0.1"}) {
    const auto limits = std::make_shared<AcceptLimits>();
    Places places;
    fill(*limits, here, places);
    CHECK(places.size() == 48);
  }
}

TEST_CASE("An IPv4 address counts as one in either form, and IPv6 addresses count one by one") {
  const test::FewDescriptors few(64);
  const auto limits = std::make_shared<AcceptLimits>();
  Places places;
  fill(*limits, "10.0.0.2", places);
  fill(*limits, "::ffff:10.0.0.2", places);
  CHECK(places.size() == 24);
  places.clear();
  fill(*limits, "2001:db8::1", places);
  fill(*limits, "2001:db8::2", places);
  CHECK(places.size() == 48);
}

TEST_CASE("A connection keeps its place when its transport has gone") {
  const test::FewDescriptors few(64);
  auto limits = std::make_shared<AcceptLimits>();
  Places places;
  fill(*limits, "10.0.0.2", places);
  limits.reset();
  places.clear();
}

}  // namespace accept_limits_test
}  // namespace batchrpc::detail
