#include <catch2/catch.hpp>
#include <string>

#include "batchrpc/status/status_server.hpp"
#include "http_client.hpp"
#include "status/channel.hpp"
#include "status/http_server.hpp"

#ifdef BATCHRPC_STATUS_TLS

#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tls_client.hpp"

namespace batchrpc::status {
namespace tls_channel_test {

using test::Answer;
using test::RawClient;
using test::SelfSigned;
using test::TlsClient;
using namespace std::chrono_literals;

const std::string kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string echo(std::string_view head, const ClientGone& = {}) {
  return "HTTP/1.1 200 OK\r\n\r\n" + std::string(head.substr(0, head.find('\r')));
}

/// A server by TLS, on loopback.
struct Server {
  SelfSigned files;
  HttpServer http;

  explicit Server(const HttpServer::Answer& answer = echo, const HttpLimits& limits = {})
      : http(listen_at({.host = "127.0.0.1", .port = 0}), answer, limits,
             tls_channels(files.certificate(), files.key())) {}
  [[nodiscard]] std::uint16_t port() const { return http.address().port; }
  [[nodiscard]] std::string ask(const std::string& request = kRequest) const {
    const TlsClient client(port(), files);
    REQUIRE(client.connect());
    client.send(request);
    return client.read_all();
  }
};

TEST_CASE("a page by TLS is for those who trust its certificate and have its token") {
  const SelfSigned files;
  const StatusOptions options{.address = GENERATE("127.0.0.1:0", "0.0.0.0:0"),
                              .token = "a-secret-of-this-test",
                              .certificate = files.certificate(),
                              .key = files.key()};
  const Node node({.name = "encrypted", .status = status_page(options)});
  CHECK(node.status_address().starts_with("https://"));
  const auto ask = [&](const std::string& authorization) {
    const TlsClient client(test::port_of(node.status_address()), files);
    REQUIRE(client.connect());
    client.send("GET /status.json HTTP/1.1\r\nHost: localhost\r\n" + authorization + "\r\n");
    return Answer(client.read_all()).status;
  };
  CHECK(ask("Authorization: Bearer a-secret-of-this-test\r\n") == 200);
  CHECK(ask("Authorization: Bearer public\r\n") == 401);
  CHECK(ask("") == 401);
}

TEST_CASE("beyond loopback any host's name will do") {
  const SelfSigned files;
  const Node node({.name = "open"});
  const StatusServer page(node, {.address = "0.0.0.0:0",
                                 .token = "a-secret-of-this-test",
                                 .certificate = files.certificate(),
                                 .key = files.key()});
  CHECK(page.address().starts_with("https://0.0.0.0:"));
  const TlsClient client(test::port_of(page.address()), files);
  REQUIRE(client.connect());
  client.send(
      "GET /metrics HTTP/1.1\r\nHost: agent.cluster:80\r\nAuthorization: Bearer "
      "a-secret-of-this-test\r\n\r\n");
  CHECK(Answer(client.read_all()).status == 200);
}

TEST_CASE("a certificate does not replace the token beyond loopback") {
  const SelfSigned files;
  const Node node({.name = "open"});
  const StatusOptions options{
      .address = "0.0.0.0:0", .certificate = files.certificate(), .key = files.key()};
  CHECK_THROWS_AS(StatusServer(node, options), InvalidArgument);
  CHECK_THROWS_WITH(
      StatusServer(node, options),
      Catch::Contains("a token (StatusOptions::token)") && !Catch::Contains("a certificate"));
}

TEST_CASE("files that are no certificate and key of each other are refused when they are named") {
  const SelfSigned files;
  const SelfSigned others;
  const auto refusal = [](const std::string& certificate, const std::string& key) {
    try {
      (void)status_page({.certificate = certificate, .key = key});
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal("/no/certificate.pem", files.key()),
             Catch::Contains("'/no/certificate.pem'") && Catch::Contains("PEM file"));
  CHECK_THAT(refusal(files.key(), files.key()), Catch::Contains("PEM file"));
  CHECK_THAT(refusal(files.certificate(), "/no/key.pem"), Catch::Contains("'/no/key.pem'"));
  CHECK_THAT(refusal(files.certificate(), others.key()), Catch::Contains("mismatch"));
  CHECK_THAT(refusal(files.certificate(), files.encrypted_key()),
             Catch::Contains("without a passphrase"));
  CHECK_THAT(refusal(files.certificate(), ""), Catch::Contains("set both"));
  CHECK_THAT(refusal("", files.key()), Catch::Contains("set both"));
  CHECK(refusal(files.certificate(), files.key()).empty());
}

TEST_CASE("a request by TLS may come in pieces, between messages that have none of it") {
  const Server server;
  const TlsClient client(server.port(), server.files);
  REQUIRE(client.connect());
  for (const char byte : kRequest) {
    client.update_key();
    client.send(std::string(1, byte));
  }
  CHECK(Answer(client.read_all()).body == "GET / HTTP/1.1");
}

TEST_CASE("a large answer by TLS is whole, and ended so that the client knows it") {
  const std::string large(std::size_t{8} << 20, 'x');
  const Server server(
      [&](std::string_view, const ClientGone&) { return "HTTP/1.1 200 OK\r\n\r\n" + large; });
  CHECK(Answer(server.ask()).body == large);
}

TEST_CASE("older TLS, plain HTTP and other bytes end the connection, and the server goes on") {
  const Server server;
  CHECK_FALSE(TlsClient(server.port(), server.files, TLS1_2_VERSION).connect());
  const RawClient plain(server.port());
  plain.send(kRequest);
  CHECK(plain.read_all().find("HTTP/1.1") == std::string::npos);
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    if (i % 2 == 0) bytes.insert(0, "\x16\x03\x01\x00\xc0\x01\x00\x00\xbc\x03\x03");
    RawClient client(server.port());
    client.send(bytes);
    client.end_sending();
    (void)client.read_all();
    client.reset();
  }
  CHECK(Answer(server.ask()).status == 200);
}

TEST_CASE("who does not complete the handshake is left, as who does not complete a request") {
  const Server server(echo, {.head = 100ms});
  const RawClient silent(server.port());
  const RawClient half(server.port());
  half.send(std::string("\x16\x03\x01\x02", 4));
  const TlsClient no_request(server.port(), server.files);
  CHECK(silent.is_closed_within(10s));
  CHECK(half.is_closed_within(10s));
  if (no_request.connect()) CHECK(no_request.connection().is_closed_within(10s));
}

TEST_CASE("clients in the middle of the handshake hold up nobody, and the slowest has to go") {
  const Server server(echo, {.connections = 4, .head = 60s});
  std::vector<RawClient> slow;
  for (int i = 0; i < 4; ++i)
    slow.emplace_back(server.port()).send(std::string("\x16\x03\x01\x02", 4));
  CHECK(Answer(server.ask()).status == 200);
  CHECK(slow[0].is_closed_within(10s));
}

TEST_CASE("a request by TLS whose head is too long is a 431") {
  const Server server(echo, {.head_bytes = 1000});
  CHECK(Answer(server.ask("GET /" + std::string(5000, 'a'))).status == 431);
}

TEST_CASE("clients by TLS that are gone at any time change nothing") {
  const Server server([](std::string_view head, const ClientGone&) {
    std::this_thread::sleep_for(2ms);
    return echo(head) + std::string(100'000, 'x');
  });
  for (int i = 0; i < 60; ++i) {
    const TlsClient client(server.port(), server.files);
    if (i % 3 == 0) continue;
    REQUIRE(client.connect());
    client.send(i % 3 == 1 ? kRequest : "GET / HT");
  }
  CHECK(Answer(server.ask()).status == 200);
}

}  // namespace tls_channel_test
}  // namespace batchrpc::status

#else

namespace batchrpc::status {

TEST_CASE("a build without OpenSSL refuses a certificate, and says what to do") {
  CHECK_THROWS_AS(status_page({.certificate = "a.pem", .key = "b.pem"}), InvalidArgument);
  CHECK_THROWS_WITH(status_page({.certificate = "a.pem", .key = "b.pem"}),
                    Catch::Contains("OpenSSL 3") && Catch::Contains("SSH tunnel"));
}

}  // namespace batchrpc::status

#endif
