#include "node/root_address.hpp"

#include <catch2/catch.hpp>

namespace batchrpc {
namespace root_address_test {

TEST_CASE("a node tries the root's Unix socket several times, and else the address that it has") {
  NodeOptions options;
  options.join = "tcp://host:1";
  RootAddress address(options);
  CHECK(address.choose() == "tcp://host:1");
  for (int i = 0; i < 3; ++i) {
    REQUIRE(address.takes_nearer());
    address.use_nearer("unix:///root");
    CHECK(address.choose() == "unix:///root");
    address.forget_nearer();
    CHECK(address.choose() == "tcp://host:1");
  }
  CHECK_FALSE(address.takes_nearer());
  address.reset();
  CHECK(address.takes_nearer());
}

TEST_CASE("a node warns once in a row of an address where no node answers") {
  NodeOptions options;
  options.join = "tcp://host:1";
  RootAddress address(options);
  address.set_tried("tcp://host:1");
  CHECK(address.is_to_be_warned_of());
  CHECK_FALSE(address.is_to_be_warned_of());
  address.set_tried("tcp://host:2");
  CHECK(address.is_to_be_warned_of());
  CHECK(address.tried() == "tcp://host:2");
}

}  // namespace root_address_test
}  // namespace batchrpc
