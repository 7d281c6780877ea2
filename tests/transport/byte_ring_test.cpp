#include "transport/byte_ring.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <random>
#include <vector>

namespace batchrpc::detail {
namespace byte_ring_test {

TEST_CASE("a ring of bytes agrees with a deque, whatever is pushed and popped") {
  std::mt19937 random(2);
  ByteRing ring;
  std::deque<std::byte> model;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t most = i % 1000 < 500 ? 3000 : 100;  // grows and empties by turns
    if (random() % 2 == 0) {
      std::vector<std::byte> bytes(random() % most);
      for (std::byte& byte : bytes)
        byte = static_cast<std::byte>(random());
      ring.push(bytes);
      model.insert(model.end(), bytes.begin(), bytes.end());
    } else {
      std::vector<std::byte> bytes(std::min<std::size_t>(random() % 3000, model.size()));
      ring.pop(bytes);
      const auto end = model.begin() + static_cast<std::ptrdiff_t>(bytes.size());
      REQUIRE(std::equal(bytes.begin(), bytes.end(), model.begin(), end));
      model.erase(model.begin(), end);
    }
    REQUIRE(ring.size() == model.size());
  }
}

}  // namespace byte_ring_test
}  // namespace batchrpc::detail
