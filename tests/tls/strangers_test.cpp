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

TEST_CASE("10^4 connections without TLS give the node no stream, and few lines in the log") {
  Seen seen;
  int accepted = 0;
  {
    const Fabric fabric = tls_fabric(
        [&](const auto& loop) { return token_security(loop, 'a', counting(seen)); }, plain());
    const auto listener = fabric.server->listen(
        fabric.address(), [&](std::unique_ptr<Stream>) { ++accepted; });
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

TEST_CASE("while silent strangers hold all places, holders of the token get theirs") {
  Seen seen;
  Fabric fabric = tls_fabric(
      [&](const auto& loop) { return token_security(loop, 'a', counting(seen)); },
      [&](const auto& loop) { return token_security(loop, 'a'); });
  const TcpTransport strangers(std::dynamic_pointer_cast<SocketLoop>(fabric.client_loop));
  Accepting accepting(fabric);
  std::vector<std::unique_ptr<Stream>> silent;
  Fabric outside = fabric;
  outside.client = std::make_shared<TcpTransport>(
      std::dynamic_pointer_cast<SocketLoop>(fabric.client_loop));
  for (int i = 0; i < 100; ++i)
    silent.push_back(connect(outside, accepting.address()).first);
  std::unique_ptr<Stream> stream;
  while (!stream)  // places are free again after a second
    stream = connect(fabric, accepting.address()).first;
  CHECK(accepting.accept()->proof()->identity == "token");
}

TEST_CASE("inputs of every kind cut a handshake off without harm") {
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
  const Fabric fabric =
      tls_fabric([](const auto& loop) { return token_security(loop, 'a', Log(LogLevel::off)); },
                 plain());
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
