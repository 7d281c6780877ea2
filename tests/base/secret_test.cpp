#include "base/secret.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "base/random_bits.hpp"

namespace batchrpc {
namespace secret_test {

// Bytes 0 to 15, as the authors of SipHash use it.
constexpr Secret kKey{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908};

TEST_CASE("secrets are SipHash-2-4 with 128 bits: the authors' test vectors") {
  const auto of_length = [](std::size_t length) {
    std::string bytes;
    for (std::size_t i = 0; i < length; ++i)
      bytes.push_back(static_cast<char>(i));
    return derive_secret(kKey, bytes);
  };
  CHECK(of_length(0) == Secret{0xe6a825ba047f81a3, 0x930255c71472f66d});
  CHECK(of_length(1) == Secret{0x44af996bd8c187da, 0x45fc229b11597634});
}

TEST_CASE("each purpose and each key has a secret of its own") {
  CHECK_FALSE(derive_secret(kKey, "worker1") == derive_secret(kKey, "worker2"));
  CHECK_FALSE(derive_secret(kKey, "worker1") == derive_secret({1, 2}, "worker1"));
  CHECK_FALSE(derive_secret(kKey, "") == derive_secret(kKey, std::string(1, '\0')));
  CHECK_FALSE(derive_secret(kKey, "12345678") == derive_secret(kKey, "123456780"));
}

TEST_CASE("random bits differ each time, and repeat only with a seed") {
  RandomBits system;
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1000; ++i)
    drawn.insert(system());
  CHECK(drawn.size() == 1000);
  RandomBits other;
  CHECK_FALSE(drawn.contains(other()));
  RandomBits a(7);
  RandomBits b(7);
  CHECK(a() == b());
  CHECK(a() == b());
}

}  // namespace secret_test
}  // namespace batchrpc
