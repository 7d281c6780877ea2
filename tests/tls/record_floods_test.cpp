// What a peer may send that brings no data.
#include <catch2/catch.hpp>
#include <cstddef>
#include <span>
#include <vector>

#include "tls/tls_error.hpp"
#include "tls/tls_pair.hpp"

namespace batchrpc::tls::test {
namespace record_floods_test {

using Buffer = TlsPair::Buffer;

/// A pair whose handshake is over.
struct Connected : TlsPair {
  Connected() {
    for (int i = 0; i < 3; ++i) {
      pass(leaving().size());
      run();
    }
    REQUIRE(server() != nullptr);
  }
};

IoResult read(const TlsPair& pair, Buffer& into) {
  const std::span<std::byte> room(into);
  return pair.server()->try_read(std::span(&room, 1));
}

TEST_CASE("a peer that sends new keys and no data is dropped, after a bounded time of reading") {
  Connected pair;
  Buffer into(1 << 20);
  std::size_t sent = 0;
  int reads = 0;
  IoResult last;
  while (!last.error && sent < (4U << 20)) {
    while (pair.leaving().size() < 64 * 1024)
      pair.update_key();
    const std::size_t before = pair.leaving().size();
    pair.pass(before);
    sent += before - pair.leaving().size();
    pair.run();
    last = read(pair, into);
    CHECK(last.bytes == 0);
    ++reads;
  }
  CHECK(last.error == TlsError::floods);
  CHECK(sent < 512 * 1024);
  CHECK(reads >= 2);
}

TEST_CASE("a peer that sends data between its new keys is read") {
  Connected pair;
  Buffer into(1 << 20);
  const Buffer data(100);
  std::size_t received = 0;
  for (int i = 0; i < 10'000; ++i) {
    pair.update_key();
    REQUIRE(pair.say(data));
    while (!pair.leaving().empty()) {
      pair.pass(pair.leaving().size());
      pair.run();
      const IoResult got = read(pair, into);
      REQUIRE_FALSE(got.error);
      received += got.bytes;
    }
  }
  CHECK(received == 10'000 * data.size());
}

}  // namespace record_floods_test
}  // namespace batchrpc::tls::test
