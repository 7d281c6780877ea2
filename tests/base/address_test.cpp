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
  for (const auto* text :
       {"tcp://127.0.0.1:29500", "tcp://[::1]:1", "tcp://some-host.example:0",
        "tcp://0.0.0.0:65535", "unix:///tmp/a socket", "unix-abstract:name", "inproc://a/b:c"}) {
    CHECK(Address::parse(text).to_string() == text);
    CHECK(Address::parse(text) == Address::parse(text));
  }
  CHECK(Address::parse("tcp://a:1") != Address::parse("tcp://a:2"));
  CHECK(Address::parse("inproc://a") != Address::parse("unix-abstract:a"));
}

TEST_CASE("An address has its parts") {
  const Address tcp = Address::parse("tcp://[fe80::1]:80");
  CHECK(tcp.scheme() == Address::Scheme::tcp);
  CHECK(tcp.name() == "fe80::1");
  CHECK(tcp.port() == 80);
  CHECK(tcp == Address::tcp("fe80::1", 80));
  const Address path = Address::parse("unix:///tmp/x");
  CHECK(path.scheme() == Address::Scheme::unix_path);
  CHECK(path.name() == "/tmp/x");
  CHECK(path.port() == 0);
  CHECK(Address::parse("unix-abstract:x") == Address::unix_abstract("x"));
  CHECK(Address::parse("inproc://x").scheme() == Address::Scheme::inproc);
}

TEST_CASE("Only names and numbers of this machine's loopback are loopback") {
  for (const auto* text : {"tcp://127.0.0.1:1", "tcp://127.1.2.3:1", "tcp://localhost:1",
                           "tcp://[::1]:1", "unix:///tmp/x", "unix-abstract:x", "inproc://x"}) {
    INFO(text);
    CHECK(Address::parse(text).is_loopback());
  }
  for (const auto* text :
       {"tcp://0.0.0.0:1", "tcp://10.0.0.1:1", "tcp://[::]:1", "tcp://host:1",
        "tcp://127.example.com:1", "tcp://127.0.0.1.example.com:1", "tcp://127.0.0.256:1",
        "tcp://127.0.0:1", "tcp://128.0.0.1:1", "tcp://localhost.example:1"}) {
    INFO(text);
    CHECK_FALSE(Address::parse(text).is_loopback());
  }
}

TEST_CASE("A wrong address is refused, with what is wrong and how to write it") {
  using Catch::Contains;
  CHECK_THAT(complaint("tcp://host"),
             Contains("the port is missing") && Contains("tcp://host:port"));
  CHECK_THAT(complaint("tcp://host:"), Contains("not a port"));
  CHECK_THAT(complaint("tcp://host:65536"), Contains("from 0 to 65535"));
  CHECK_THAT(complaint("tcp://host:-1"), Contains("not a port"));
  CHECK_THAT(complaint("tcp://host:+1"), Contains("not a port"));
  CHECK_THAT(complaint("tcp://host:1x"), Contains("'1x' is not a port"));
  CHECK_THAT(complaint("tcp://:1"), Contains("the host is missing"));
  CHECK_THAT(complaint("tcp://[]:1"), Contains("the host is missing"));
  CHECK_THAT(complaint("tcp://::1:80"), Contains("brackets"));
  CHECK_THAT(complaint("tcp://[::1"), Contains("brackets"));
  CHECK_THAT(complaint("tcp://a b:1"), Contains("or a control character"));
  CHECK_THAT(complaint(std::string_view("tcp://a\0b:1", 11)), Contains("or a control character"));
  CHECK_THAT(complaint("unix://tmp/x"), Contains("three slashes"));
  CHECK_THAT(complaint("unix-abstract:"), Contains("is missing"));
  CHECK_THAT(complaint("inproc://"), Contains("is missing"));
  CHECK_THAT(complaint("unix:///" + std::string(107, 'x')), Contains("longer than 107"));
  CHECK_THAT(complaint(std::string_view("unix-abstract:a\0b", 17)), Contains("zero byte"));
  CHECK_THAT(complaint("udp://host:1"), Contains("'udp://host:1'") && Contains("unknown scheme"));
  CHECK_THAT(complaint(""), Contains("unknown scheme"));
  CHECK_THAT(complaint("127.0.0.1:29500"), Contains("use tcp://host:port"));
}

}  // namespace address_test
