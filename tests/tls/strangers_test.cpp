// Peers that never authenticate: what they cost, and what the log says.
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/transport/tcp_transport.hpp"
#include "long_tests.hpp"
#include "tls/certificate_files.hpp"
#include "tls_fabric.hpp"

namespace batchrpc::test {
namespace strangers_test {

using namespace std::chrono_literals;

struct Seen {
  std::mutex mutex;
  int lines = 0;
};

Log counting(Seen& seen) {
  return Log(LogLevel::info, [&seen](LogLevel, std::string_view) {
    const std::lock_guard lock(seen.mutex);
    ++seen.lines;
  });
}

MakeSecurity plain() {
  return [](const std::shared_ptr<Loop>&) { return nullptr; };
}

TEST_CASE("10^4 connections without TLS give the node no stream, and few lines in the log",
          "[threads]") {
  Seen seen;
  int accepted = 0;
  {
    const Fabric fabric = tls_fabric(
        [&](const auto& loop) { return token_security(loop, 'a', counting(seen)); }, plain());
    const auto listener =
        fabric.server->listen(fabric.address(), [&](std::unique_ptr<Stream>) { ++accepted; });
    Ends ends(fabric);
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) {
      auto [stream, error] = connect(fabric, listener->address());
      REQUIRE(stream);
      // Bytes of any kind, also such as begin like a handshake.
      auto bytes = pattern(random() % 200, random());
      if (i % 3 == 0 && bytes.size() > 5) {
        bytes[0] = std::byte{22};
        bytes[1] = std::byte{3};
        bytes[2] = std::byte{1};
      }
      if (!bytes.empty()) {
        const std::span<const std::byte> out(bytes);
        (void)stream->try_write({&out, 1});
      }
    }
  }
  CHECK(accepted == 0);
  CHECK(seen.lines >= 1);
  CHECK(seen.lines <= 30);
}

TEST_CASE("whoever cannot prove that it may connect gets no stream, try after try", "[threads]") {
  const CertificateFiles files;
  SecurityOptions own = files.options("learner");
  const SecurityOptions revoked = files.options("revoked");
  own.revocations = files.revocations({revoked.certificate});
  const auto by = [](const std::shared_ptr<tls::Credentials>& credentials) -> MakeSecurity {
    return [credentials](const std::shared_ptr<Loop>& loop) {
      return std::make_shared<tls::TlsSecurity>(tls::TlsSecurity::Parts{
          .loop = loop, .log = Log(LogLevel::off), .make_credentials = [credentials] {
            return credentials;
          }});
    };
  };
  const std::vector<MakeSecurity> kinds{
      by(unchecked_credentials(files.by_other_authority("other"))),
      by(unchecked_credentials(files.options("expired", -2h, -1h))),
      by(unchecked_credentials(files.options("early", 1h, 2h))),
      by(unchecked_credentials(files.named("nameless", {}))),
      by(unchecked_credentials(revoked)),
      by(unchecked_credentials(files.options("worker"), TLS1_2_VERSION)),
      by(tls::token_credentials(std::string(64, 'b'), "a token", {.name = "n", .job = "job"})),
      plain()};
  Seen seen;
  int accepted = 0;
  const int tries = times(400, 10'000);
  {
    const auto credentials = tls::certificate_credentials(own, {.name = "learner", .job = "job"});
    const Fabric fabric = tls_fabric(
        [&](const std::shared_ptr<Loop>& loop) {
          return std::make_shared<tls::TlsSecurity>(tls::TlsSecurity::Parts{
              .loop = loop, .log = counting(seen), .make_credentials = [credentials] {
                return credentials;
              }});
        },
        plain());
    const auto listener =
        fabric.server->listen(fabric.address(), [&](std::unique_ptr<Stream>) { ++accepted; });
    Ends ends(fabric);
    const auto loop = std::dynamic_pointer_cast<SocketLoop>(fabric.client_loop);
    std::vector<Fabric> clients;
    for (const MakeSecurity& kind : kinds) {
      clients.push_back(fabric);
      clients.back().client = std::make_shared<TcpTransport>(loop, Log(), kind(loop));
    }
    for (int i = 0; i < tries; ++i) {
      const std::size_t kind = static_cast<std::size_t>(i) % kinds.size();
      CAPTURE(kind);
      auto [stream, error] = connect(clients[kind], listener->address());
      if (!stream) continue;
      ends.write_all(*stream, pattern(100, 1));
      ends.read(*stream, 1);  // until the server ends it
      CHECK((ends.last.error || ends.last.end));
    }
  }
  CHECK(accepted == 0);
  CHECK(seen.lines >= 1);
  CHECK(seen.lines <= 50);
}

TEST_CASE("while silent strangers hold all places, holders of the token get theirs", "[threads]") {
  Seen seen;
  Fabric fabric =
      tls_fabric([&](const auto& loop) { return token_security(loop, 'a', counting(seen)); },
                 [&](const auto& loop) { return token_security(loop, 'a'); });
  const TcpTransport strangers(std::dynamic_pointer_cast<SocketLoop>(fabric.client_loop));
  Accepting accepting(fabric);
  std::vector<std::unique_ptr<Stream>> silent;
  Fabric outside = fabric;
  outside.client =
      std::make_shared<TcpTransport>(std::dynamic_pointer_cast<SocketLoop>(fabric.client_loop));
  for (int i = 0; i < 100; ++i)
    silent.push_back(connect(outside, accepting.address()).first);
  const std::unique_ptr<Stream> stream = connect(fabric, accepting.address()).first;
  REQUIRE(stream);
  CHECK(accepting.accept()->proof()->identity == "token");
}

TEST_CASE("inputs of every kind cut a handshake off without harm", "[threads]") {
  // What a client sends first, changed in one byte or cut.
  std::vector<std::byte> hello;
  {
    Fabric fabric = tls_fabric(plain(), [](const auto& loop) { return token_security(loop, 'a'); });
    Accepting accepting(fabric);
    Ends ends(fabric);
    fabric.client->connect(accepting.address(), fabric.soon(),
                           [](std::unique_ptr<Stream>, std::error_code) {});
    const auto server = accepting.accept();
    hello.resize(4096);
    const std::span<std::byte> room(hello);
    IoResult got;
    while ((got = server->try_read({&room, 1})).would_block())
      ends.wait_readable(*server);
    hello.resize(got.bytes);
  }
  REQUIRE(hello.size() > 100);
  int accepted = 0;
  const Fabric fabric = tls_fabric(
      [](const auto& loop) { return token_security(loop, 'a', Log(LogLevel::off)); }, plain());
  const auto listener =
      fabric.server->listen(fabric.address(), [&](std::unique_ptr<Stream>) { ++accepted; });
  Ends ends(fabric);
  for (std::size_t i = 0; i < hello.size(); ++i) {
    auto [stream, error] = connect(fabric, listener->address());
    REQUIRE(stream);
    auto changed = hello;
    changed[i] ^= std::byte{0xff};
    if (i % 2 == 0) changed.resize(i);
    if (!changed.empty()) {
      const std::span<const std::byte> out(changed);
      (void)stream->try_write({&out, 1});
    }
    if (i % 2 != 0) ends.read(*stream, 1);  // an answer, or the end
  }
  CHECK(accepted == 0);
}

}  // namespace strangers_test
}  // namespace batchrpc::test
