#include "batchrpc/base/address.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "batchrpc/base/error.hpp"

using batchrpc::Address;
using batchrpc::InvalidArgument;

namespace address_test {

/// What is wrong with `text`.
std::string complaint(std::string_view text) {
  try {
    const Address address = Address::parse(text);
    return "taken as " + address.to_string();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST_CASE("Addresses are read and written as they were") {
  for (const auto* text : {"tcp://127.0.0.1:29500", "tcp://[::1]:1", "tcp://some-host.example:0",
                           "tcp://0.0.0.0:65535", "unix:///tmp/a socket", "unix-abstract:name",
                           "inproc://a/b:c", "x+y.2-z:of a transport that is not here"}) {
    CHECK(Address::parse(text).to_string() == text);
    CHECK(Address::parse(text) == Address::parse(text));
  }
  CHECK(Address::parse("tcp://a:1") != Address::parse("tcp://a:2"));
  CHECK(Address::parse("inproc://a") != Address::parse("unix-abstract:a"));
}

TEST_CASE("An address has its scheme and its name") {
  const Address tcp = Address::parse("tcp://[fe80::1]:80");
  CHECK(tcp.scheme() == "tcp");
  CHECK(tcp.name() == "[fe80::1]:80");
  const Address path = Address::parse("unix:///tmp/x");
  CHECK(path.scheme() == "unix");
  CHECK(path.name() == "/tmp/x");
  CHECK(Address::parse("unix-abstract:x").scheme() == "unix-abstract");
  CHECK(Address::parse("unix-abstract:x").name() == "x");
}

TEST_CASE("What is no address is refused, with how to write one") {
  using Catch::Contains;
  for (const auto* text : {"", "nonsense", "127.0.0.1:29500", "://x", "Tcp://x:1", "a b:c", ":"}) {
    CHECK_THAT(complaint(text),
               Contains("does not begin with a scheme") && Contains("write tcp://host:port"));
  }
  CHECK_THAT(complaint("unix-abstract:"), Contains("is missing"));
  CHECK_THAT(complaint("inproc://"), Contains("is missing"));
}

TEST_CASE("A refusal shows the address, whatever bytes it has, and the reason") {
  const Address address = Address::parse(std::string_view("pipe://a\0b\n", 11));
  try {
    address.refuse("it is taken");
    FAIL();
  } catch (const InvalidArgument& error) {
    CHECK(error.what() == std::string("address 'pipe://a\\x00b\\n': it is taken"));
  }
}

}  // namespace address_test
