#include "session/first_bytes.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

namespace batchrpc {
namespace first_bytes_test {

using Catch::Contains;
using namespace std::string_view_literals;

std::string text_of(std::string_view sent) {
  return first_bytes_text(std::as_bytes(std::span(sent)));
}

TEST_CASE("the first bytes of a stranger are shown as numbers and as text") {
  CHECK(text_of("\0ab\xff\x7f"sv) == "it begins with 00 61 62 ff 7f (.ab..)");
  CHECK(text_of("") == "it sent nothing");
  CHECK(text_of("x") == "it begins with 78 (x)");
}

TEST_CASE("no more than 32 of its bytes are shown") {
  CHECK_THAT(text_of(std::string(32, 'x') + "yz"),
             Contains("(" + std::string(32, 'x') + ")") && !Contains("y"));
}

TEST_CASE("strangers that speak HTTP, TLS or SSH are recognised") {
  CHECK(text_of("GET / ") ==
        "it looks like an HTTP request and begins with 47 45 54 20 2f 20 (GET / )");
  CHECK_THAT(text_of("POST /metrics HTTP/1.1\r\n"), Contains("like an HTTP request"));
  CHECK_THAT(text_of("PRI * HTTP/2.0\r\n\r\nSM"), Contains("like an HTTP request"));
  CHECK_THAT(text_of("HTTP/1.1 400 Bad Request"), Contains("like an HTTP response"));
  CHECK_THAT(text_of("SSH-2.0-OpenSSH_9.2"), Contains("like SSH"));
  CHECK_THAT(text_of("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv),
             Contains("like a TLS handshake"));
  CHECK_THAT(text_of("GETTING"), !Contains("looks like"));
}

}  // namespace first_bytes_test
}  // namespace batchrpc
