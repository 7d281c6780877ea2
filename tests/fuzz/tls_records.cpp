#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "fuzz/targets.hpp"
#include "fuzz/tls_steps.hpp"
#include "tls/tls_pair.hpp"

// A TLS server, as nodes have it, and a client of OpenSSL alone. The input moves the client's bytes
// to the server: whole, in pieces, changed, or with others between them.

namespace batchrpc::fuzz {
namespace {

class TlsScene {
 public:
  void run(Input input) {
    while (input.size() >= 2) {
      const auto kind = std::to_integer<unsigned>(input[0]) % 16;
      const auto count = std::to_integer<std::size_t>(input[1]);
      input = input.subspan(2);
      const std::size_t first = std::min(count, kind == kInsert ? input.size() : leaving().size());
      switch (kind) {
        case kChange:
          if (first > 0) leaving()[first - 1] ^= std::byte{1};
          pair_.pass(first);
          break;
        case kDrop:
          leaving().erase(leaving().begin(),
                          leaving().begin() + static_cast<std::ptrdiff_t>(first));
          break;
        case kInsert:
          pair_.send(input.first(first));
          input = input.subspan(first);
          break;
        case kSay:
          say(count);
          break;
        case kAnswer:
          answer(count);
          break;
        case kClose:
          pair_.close();
          break;
        case kUpdateKey:
          for (std::size_t i = 0; i <= count; ++i)
            pair_.update_key();
          break;
        default:
          pair_.pass(count == 0 ? leaving().size() : first);
      }
      pair_.run();
      if (pair_.server() != nullptr) read();
    }
    require(ERR_peek_error() == 0, "an error is left in OpenSSL's queue");
  }

 private:
  using Buffer = tls::test::TlsPair::Buffer;

  Buffer& leaving() { return pair_.leaving(); }

  void read() {
    Buffer bytes(5000);
    const std::array<std::span<std::byte>, 2> room{std::span(bytes).first(3),
                                                   std::span(bytes).subspan(3)};
    const IoResult result = pair_.server()->try_read(room);
    require(result.bytes <= said_.size(), "bytes that nobody sent");
    require(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(result.bytes),
                       said_.begin()),
            "other bytes than the client sent");
    said_.erase(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(result.bytes));
    if (result.would_block()) pair_.server()->wait_readable([] {});
  }

  void say(std::size_t count) {
    Buffer data(count * 64);
    for (std::byte& byte : data)
      byte = std::byte(++counter_);
    if (count > 0 && pair_.say(data)) said_.insert(said_.end(), data.begin(), data.end());
  }

  void answer(std::size_t count) {
    if (pair_.server() == nullptr) return;
    require(pair_.server()->proof() != nullptr, "a peer that has proved nothing");
    const Buffer data(count * 64);
    const std::array<Input, 2> buffers{Input(data), Input(data).first(data.size() / 2)};
    if (pair_.server()->try_write(buffers).would_block()) pair_.server()->wait_writable([] {});
  }

  tls::test::TlsPair pair_;
  Buffer said_;  // data that the server has not read
  unsigned char counter_ = 0;
};

}  // namespace

void tls_records(Input input) { TlsScene().run(input); }

}  // namespace batchrpc::fuzz
