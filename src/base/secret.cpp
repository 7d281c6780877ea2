#include "base/secret.hpp"

#include <bit>
#include <cstddef>

namespace batchrpc {
namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  [[nodiscard]] std::uint64_t output() noexcept {
    for (int i = 0; i < 4; ++i)
      round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

// The bytes of up to eight characters, the first one lowest.
std::uint64_t little_endian(std::string_view bytes) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return word;
}

}  // namespace

Secret derive_secret(const Secret& key, std::string_view purpose) noexcept {
  SipState state{.v0 = 0x736f6d6570736575 ^ key.first,
                 .v1 = 0x646f72616e646f6d ^ key.second ^ 0xee,
                 .v2 = 0x6c7967656e657261 ^ key.first,
                 .v3 = 0x7465646279746573 ^ key.second};
  const std::uint64_t length = purpose.size();
  for (; purpose.size() >= 8; purpose.remove_prefix(8))
    state.absorb(little_endian(purpose.substr(0, 8)));
  state.absorb(little_endian(purpose) | length << 56);
  Secret secret;
  state.v2 ^= 0xee;
  secret.first = state.output();
  state.v1 ^= 0xdd;
  secret.second = state.output();
  return secret;
}

}  // namespace batchrpc
