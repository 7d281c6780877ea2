#include "status/listen_address.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "batchrpc/base/error.hpp"

namespace batchrpc::status {
namespace listen_address_test {

TEST_CASE("a status page's address is a host and a port, and no host is loopback") {
  const auto [text, host, port, again] =
      GENERATE(table<std::string, std::string, int, std::string>({
          {"127.0.0.1:0", "127.0.0.1", 0, "127.0.0.1:0"},
          {":8080", "127.0.0.1", 8080, "127.0.0.1:8080"},
          {"[::1]:65535", "::1", 65535, "[::1]:65535"},
          {"agent-3.cluster:80", "agent-3.cluster", 80, "agent-3.cluster:80"},
          {"0.0.0.0:1", "0.0.0.0", 1, "0.0.0.0:1"},
      }));
  const ListenAddress address = ListenAddress::parse(text);
  CHECK(address.host == host);
  CHECK(address.port == port);
  CHECK(address.to_string() == again);
}

TEST_CASE("what is no address of a status page is refused with an example of one") {
  const std::string text =
      GENERATE("", "8080", "localhost", "127.0.0.1:", ":x", ":-1", ":65536", ":1x", "::1", "::1:80",
               "[::1]", "[::1:80", "[]:80", "[localhost]:80", "http://127.0.0.1:80", "a b:80",
               "a/b:80", "tcp://127.0.0.1:0", "*:0");
  CHECK_THROWS_AS(ListenAddress::parse(text), InvalidArgument);
  CHECK_THROWS_WITH(ListenAddress::parse(text), Catch::Contains("such as 127.0.0.1:8080"));
}

TEST_CASE("loopback has several names, and no other host's is one of them") {
  for (const char* own : {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]",
                          "[::1]:80", "127.0.0.5:80"}) {
    INFO(own);
    CHECK(is_own_host(own, "127.0.0.5"));
  }
  for (const char* other : {"", ":80", "evil.example", "localhost.evil.example:80", "127.0.0.1.a",
                            "localhost:80x", "127.0.0.6", "[::2]", "localhost@evil"}) {
    INFO(other);
    CHECK_FALSE(is_own_host(other, "127.0.0.5"));
  }
  CHECK(is_own_host("[fe80::1]:80", "fe80::1"));
}

}  // namespace listen_address_test
}  // namespace batchrpc::status
