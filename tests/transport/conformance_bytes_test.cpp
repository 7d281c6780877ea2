// What every transport must do with the bytes of a stream.
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include "sanitizers.hpp"
#include "transport/every_fabric.hpp"

namespace batchrpc::test {
namespace conformance_bytes_test {

bool is_gone(const IoResult& result) {
  return result.error == std::errc::broken_pipe || result.error == std::errc::connection_reset ||
         result.error == std::errc::not_connected;
}

TEST_CASE("bytes arrive in order, in whatever pieces they are written and read", "[threads]") {
  over_each([](Fabric& fabric) {
    std::mt19937 random(7);
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    for (int round = 0; round < 30; ++round) {
      const std::size_t size = 1 + random() % 5000;
      const auto sent = pattern(size, random());
      const bool from_client = random() % 2 == 0;
      Stream& from = from_client ? *pair.client : *pair.server;
      Stream& to = from_client ? *pair.server : *pair.client;
      CHECK(ends.transfer(from, to, sent, 1 + random() % 2000, 1 + random() % 2000) == sent);
    }
  });
}

TEST_CASE("bytes written and read one at a time arrive in order", "[threads]") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const auto sent = pattern(400, 1);
    CHECK(ends.transfer(*pair.client, *pair.server, sent, 1, 1) == sent);
    for (std::size_t i = 0; i < 40; ++i) {
      const auto byte = std::span(sent).subspan(i, 1);
      ends.write_all(*pair.server, byte);
      CHECK(ends.read(*pair.client, 1)[0] == byte[0]);
    }
  });
}

TEST_CASE("one try gathers from many buffers and scatters into many", "[threads]") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const auto sent = pattern(100 * 10, 3);
    std::vector<std::span<const std::byte>> out;
    for (std::size_t i = 0; i < 100; ++i) {
      out.push_back(std::span(sent).subspan(10 * i, i % 7 == 0 ? 0 : 10));
    }
    const IoResult written = pair.client->try_write(out);
    CHECK(written.bytes == 10 * (64 - 10));  // 64 buffers are looked at, ten of which are empty
    std::vector<std::byte> expected;
    for (std::size_t i = 0; i < 64; ++i)
      expected.insert(expected.end(), out[i].begin(), out[i].end());

    std::vector<std::byte> got(written.bytes);
    std::size_t count = 0;
    while (count < got.size()) {
      const auto rest = std::span(got).subspan(count);
      const std::vector<std::span<std::byte>> in{
          rest.first(std::min<std::size_t>(3, rest.size())),
          {},
          rest.subspan(std::min<std::size_t>(3, rest.size()))};
      const IoResult result = pair.server->try_read(in);
      REQUIRE(!result.end);
      REQUIRE(!result.error);
      if (result.would_block()) ends.wait_readable(*pair.server);
      count += result.bytes;
    }
    CHECK(got == expected);
  });
}

TEST_CASE("a message of 64 MiB arrives whole", "[threads]") {
  constexpr std::size_t kSize = std::size_t{BATCHRPC_TEST_TSAN ? 6 : 64} * 1024 * 1024;
  const auto sent = pattern(kSize, 5);
  over_each([&](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const bool whole = Ends(fabric).transfer(*pair.client, *pair.server, sent) == sent;
    CHECK(whole);
  });
}

TEST_CASE("either side may close after any byte, and the other reads what came before",
          "[threads]") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    for (std::size_t size = 0; size < 24; ++size) {
      for (const bool client_closes : {true, false}) {
        for (const bool by_destruction : {true, false}) {
          Pair pair = accepting.connect();
          auto& closing = client_closes ? pair.client : pair.server;
          auto& other = client_closes ? pair.server : pair.client;
          const auto sent = pattern(size, size);
          ends.write_all(*closing, sent, 1 + size / 3);
          if (by_destruction) {
            closing.reset();
          } else {
            closing->shutdown();
            closing->shutdown();
          }
          CHECK(ends.read(*other, 1000) == sent);
          CHECK(ends.last.end);
          // Writes fail sooner or later, and raise no signal.
          const std::byte byte{};
          const std::span<const std::byte> one(&byte, 1);
          IoResult result;
          for (int i = 0; i < 1000 && !result.error; ++i)
            result = other->try_write({&one, 1});
          if (result.error) CHECK(is_gone(result));
        }
      }
    }
  });
}

TEST_CASE("after a shutdown this side's tries give the end or an error", "[threads]") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    pair.client->shutdown();
    std::array<std::byte, 4> room{};
    const std::span<std::byte> in(room);
    const IoResult read = pair.client->try_read({&in, 1});
    CHECK((read.end || read.error));
    const std::span<const std::byte> out(room);
    CHECK(is_gone(pair.client->try_write({&out, 1})));
  });
}

TEST_CASE("a shutdown calls this side's waiting handlers", "[threads]") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    Countdown called(1);
    pair.client->wait_readable([&] { called.arrive(); });
    pair.client->shutdown();
    called.wait(fabric.waiting());
  });
}

TEST_CASE("a reader that stops makes the writer wait, and memory stays bounded", "[threads]") {
  static constexpr std::size_t kBound = 32 * 1024 * 1024;
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const auto block = pattern(64 * 1024, 1);
    std::size_t written = 0;
    IoResult result;
    // A socket takes more once the system has moved what it has.
    for (int full = 0; full < 3 && written < kBound;) {
      const std::span<const std::byte> out(block);
      result = pair.client->try_write({&out, 1});
      REQUIRE(!result.error);
      written += result.bytes;
      full = result.would_block() ? full + 1 : 0;
    }
    REQUIRE(written < kBound);

    Signal writable;
    pair.client->wait_writable([&] { writable.set(); });
    std::size_t read = 0;
    std::vector<std::byte> room(256 * 1024);
    while (read < written) {
      const std::span<std::byte> in(room);
      const IoResult got = pair.server->try_read({&in, 1});
      REQUIRE(!got.error);
      REQUIRE(!got.end);
      read += got.bytes;
      if (got.would_block()) ends.wait_readable(*pair.server);
    }
    CHECK(read == written);
    writable.wait(fabric.waiting());
  });
}

}  // namespace conformance_bytes_test
}  // namespace batchrpc::test
