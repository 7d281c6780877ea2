#include "batchrpc/transport/tcp_address.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace tcp_address_test {

/// What is wrong with `text`.
std::string complaint(std::string_view text) {
  try {
    return "taken as " + TcpAddress::parse(text).to_string();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST_CASE("addresses of TCP are read and written as they were") {
  for (const auto* text : {"tcp://127.0.0.1:29500", "tcp://[::1]:1", "tcp://some-host.example:0",
                           "tcp://0.0.0.0:65535"}) {
    CHECK(TcpAddress::parse(text).to_string() == text);
    CHECK(TcpAddress::parse(text).address() == Address::parse(text));
  }
  const TcpAddress parts = TcpAddress::parse("tcp://[fe80::1]:80");
  CHECK(parts == TcpAddress{.host = "fe80::1", .port = 80});
  CHECK(parts != TcpAddress{.host = "fe80::1", .port = 81});
}

TEST_CASE("only names and numbers of this machine's loopback are loopback") {
  for (const auto* text :
       {"tcp://127.0.0.1:1", "tcp://127.1.2.3:1", "tcp://localhost:1", "tcp://[::1]:1"}) {
    INFO(text);
    CHECK(TcpAddress::parse(text).is_loopback());
  }
  for (const auto* text :
       {"tcp://0.0.0.0:1", "tcp://10.0.0.1:1", "tcp://[::]:1", "tcp://host:1",
        "tcp://127.example.com:1", "tcp://127.0.0.1.example.com:1", "tcp://127.0.0.256:1",
        "tcp://127.0.0:1", "tcp://128.0.0.1:1", "tcp://localhost.example:1"}) {
    INFO(text);
    CHECK_FALSE(TcpAddress::parse(text).is_loopback());
  }
}

TEST_CASE("a wrong address of TCP is refused, with what is wrong and how to write it") {
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
  CHECK_THAT(complaint("tcp://a b:1"), Contains("not allowed in host names"));
  CHECK_THAT(complaint(std::string_view("tcp://a\0b:1", 11)),
             Contains("not allowed in host names"));
  CHECK_THAT(complaint("tcp:host:1"), Contains("tcp://host:port"));
  CHECK_THAT(complaint("unix:///tmp/x"), Contains("not a TCP address"));
}

}  // namespace tcp_address_test
}  // namespace batchrpc
