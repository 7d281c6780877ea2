#include "status/access.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "batchrpc/status/status_server.hpp"
#include "http_client.hpp"
#include "status/channel.hpp"

namespace batchrpc::status {
namespace access_test {

using test::Answer;
using test::get;

const std::string kToken = "Zm9v-bar_baz.~+/=0123456789";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const bool is_there = at + i < bytes.size();
      bits = bits << 8U | (is_there ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i)
      text += at + i > bytes.size() ? '=' : kLetters[bits >> (18 - 6 * i) & 63U];
  }
  return text;
}

std::string header(const std::string& authorization) {
  return "Host: localhost\r\nAuthorization: " + authorization + "\r\n";
}

/// A node's page with a token.
struct Guarded {
  std::optional<Node> node{Node({.name = "guarded", .logging = {.level = LogLevel::error}})};
  StatusServer server{*node, {.token = kToken}};
  std::string page = server.address();

  [[nodiscard]] int status(const std::string& authorization,
                           const std::string& target = "/status.json") const {
    return get(page, target, header(authorization)).status;
  }
};

TEST_CASE("without a token everyone is let in, whatever they send") {
  const Access access("");
  CHECK(access.is_open());
  CHECK(access.allows(""));
  CHECK(access.allows("Bearer something"));
}

TEST_CASE("a token is let in as a bearer's, or as the password of any user") {
  const Access access(kToken);
  CHECK_FALSE(access.is_open());
  const std::string known = GENERATE(
      "Bearer " + kToken, "bearer " + kToken, "BEARER   " + kToken, "Basic " + base64(":" + kToken),
      "basic " + base64("user:" + kToken), "Basic " + base64("\xc3\xbc:" + kToken));
  CHECK(access.allows(known));
}

TEST_CASE("what is not the token is not let in: none, another, its prefix, more, another scheme") {
  const Access access(kToken);
  const std::string wrong = GENERATE(
      as<std::string>(), "", kToken, "Bearer", "Bearer ", "Bearer" + kToken, "Bearer\t" + kToken,
      "Bearer " + kToken.substr(1), "Bearer " + kToken.substr(0, kToken.size() - 1),
      "Bearer " + kToken + "x", "Bearer " + kToken + " ", "Bearer " + kToken + kToken,
      "Bearer Z" + std::string(kToken.size() - 1, '0'), "Token " + kToken, "Basic", "Basic ",
      "Basic " + kToken, "Basic " + base64(kToken), "Basic " + base64(kToken + ":"),
      "Basic " + base64(kToken + ":x"), "Basic " + base64("user:" + kToken + "x"),
      "Basic " + base64("a:b:" + kToken), "Basic ====", "Basic :", "Basic \xff\xfe",
      "Digest username=\"" + kToken + "\"");
  INFO(wrong);
  CHECK_FALSE(access.allows(wrong));
}

TEST_CASE("a token that a header cannot carry is refused, and the refusal does not show it") {
  const std::string wrong =
      GENERATE(as<std::string>(), "15-chars-secret", "0123456789-secret\n", "0123456789 words",
               "0123456789-secret:", "0123456789-secret\xc3\xa4",
               std::string("0123456789-secret\0", 18), std::string(2000, 's'));
  INFO("'" << wrong << "'");
  CHECK_THROWS_AS(Access(wrong), InvalidArgument);
  CHECK_THROWS_WITH(Access(wrong), Catch::Contains("openssl rand -hex 32") &&
                                       !Catch::Contains("secret") && !Catch::Contains("words"));
  CHECK_THROWS_AS(status_page({.token = wrong}), InvalidArgument);
}

TEST_CASE("a page with a token answers who sends it, and asks everyone else for it") {
  const Guarded guarded;
  const std::string target =
      GENERATE("/", "/status.json", "/metrics", "/trace?seconds=1", "/nothing");
  const Answer none = get(guarded.page, target);
  CHECK(none.status == 401);
  CHECK(none.has("WWW-Authenticate: Bearer realm=\"batchrpc\""));
  CHECK(none.has("WWW-Authenticate: Basic realm=\"batchrpc\", charset=\"UTF-8\""));
  CHECK_THAT(none.body, Catch::StartsWith("this page needs its token: send"));
  CHECK(std::count(none.body.begin(), none.body.end(), '\n') == 1);
  CHECK(guarded.status("Bearer " + kToken.substr(1), target) == 401);
  const int wanted = target == "/nothing" ? 404 : 200;
  CHECK(guarded.status("Bearer " + kToken, target) == wanted);
  CHECK(guarded.status("Basic " + base64("me:" + kToken), target) == wanted);
}

TEST_CASE("a token in the address, and one of two tokens, are none") {
  const Guarded guarded;
  CHECK(get(guarded.page, "/?token=" + kToken).status == 401);
  const std::string right = "Authorization: Bearer " + kToken + "\r\n";
  CHECK(get(guarded.page, "/", "Host: localhost\r\n" + right).status == 200);
  CHECK(get(guarded.page, "/", "Host: localhost\r\n" + right + right).status == 401);
}

TEST_CASE("a token does not open a page to other hosts and other sites") {
  const Guarded guarded;
  const std::string right = "Authorization: Bearer " + kToken + "\r\n";
  CHECK(get(guarded.page, "/", "Host: evil.example\r\n" + right).status == 403);
  CHECK(get(guarded.page, "/metrics", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n" + right)
            .status == 403);
}

TEST_CASE("healthz is open to everyone, and says only whether the node lives") {
  Guarded guarded;
  const std::string headers =
      GENERATE("Host: localhost\r\n", "", "Host: agent.cluster\r\nSec-Fetch-Site: cross-site\r\n");
  const Answer alive = get(guarded.page, "/healthz", headers);
  CHECK(alive.status == 200);
  CHECK(alive.body == "ok\n");
  const std::uint16_t port = test::port_of(guarded.page);
  const Answer head = test::ask(port, "HEAD /healthz HTTP/1.1\r\n" + headers + "\r\n");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  CHECK(test::ask(port, "POST /healthz HTTP/1.1\r\n" + headers + "\r\n").status == 405);
  guarded.node.reset();
  const Answer gone = get(guarded.page, "/healthz", headers);
  CHECK(gone.status == 503);
  CHECK(gone.body == "the node has ended\n");
}

TEST_CASE("10^3 malformed Authorization headers are refused, and the page goes on") {
  const Guarded guarded;
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  const auto bytes = [&](std::size_t most) {  // no line ends: they would begin another header
    std::string text(below(most), '\0');
    std::generate(text.begin(), text.end(), [&] {
      const auto byte = static_cast<char>(below(256));
      return byte == '\r' || byte == '\n' ? ' ' : byte;
    });
    return text;
  };
  for (int i = 0; i < 1000; ++i) {
    std::string wrong;
    switch (below(4)) {
      case 0:
        wrong = bytes(200);
        break;
      case 1:
        wrong = (below(2) == 0 ? "Basic " : "Bearer ") + bytes(200);
        break;
      case 2:
        wrong = "Basic " + base64(bytes(200));
        break;
      default:
        wrong = "Bearer " + kToken;
        wrong[7 + below(kToken.size())] ^= static_cast<char>(1 << below(3));
    }
    INFO(wrong);
    REQUIRE(guarded.status(wrong) == 401);
  }
  CHECK(guarded.status("Bearer " + kToken) == 200);
}

TEST_CASE("an address beyond loopback is refused without a token and a certificate") {
  const Node node({.name = "inside", .logging = {.level = LogLevel::error}});
  const std::string address = GENERATE("0.0.0.0:0", "[::]:0");
  CHECK_THROWS_AS(StatusServer(node, {.address = address}), InvalidArgument);
  CHECK_THROWS_WITH(StatusServer(node, {.address = address}),
                    Catch::Contains("a token (StatusOptions::token) and a certificate") &&
                        Catch::Contains("127.0.0.1 and an SSH tunnel"));
  CHECK_THROWS_AS(StatusServer(node, {.address = address, .token = kToken}), InvalidArgument);
  CHECK_THROWS_WITH(StatusServer(node, {.address = address, .token = kToken}),
                    !Catch::Contains("a token") && !Catch::Contains(kToken) &&
                        Catch::Contains(has_tls() ? "a certificate with its key" : "has no TLS"));
  CHECK_THROWS_AS(Node({.name = "b", .status = status_page({.address = address})}),
                  InvalidArgument);
}

}  // namespace access_test
}  // namespace batchrpc::status
