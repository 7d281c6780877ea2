#include "env/batch_memory.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

namespace batchrpc::env {
namespace batch_memory_test {

Bytes filled(const Bytes& place, int with) {
  std::memset(place.mutable_data(), with, place.size());
  return place;
}

TEST_CASE("places of one buffer lie side by side, and are joined without a copy") {
  const auto pages = std::make_shared<PayloadMemory>();
  BatchMemory memory(pages);
  const Bytes second = filled(memory.place_in(0, 1, 2, 64), 2);
  const Bytes first = filled(memory.place_in(0, 0, 2, 64), 1);
  CHECK(second.data() == first.data() + 64);
  const Bytes joined = join({first, second}, 64, *pages);
  CHECK(joined.data() == first.data());
  CHECK(joined.size() == 128);

  memory.taken(0);
  CHECK(memory.place_in(0, 0, 2, 64).owner() != first.owner());
  CHECK(memory.place_in(1, 0, 2, 64).owner() != memory.place_in(0, 1, 2, 64).owner());
}

TEST_CASE("a place is given once, since what was to come there may be on its way yet") {
  BatchMemory memory(std::make_shared<PayloadMemory>());
  const Bytes first = memory.place_in(0, 0, 2, 64);
  CHECK(memory.place_in(0, 0, 2, 64).empty());
  CHECK(memory.place_in(0, 1, 2, 64).data() == first.data() + 64);
  memory.taken(0);
  CHECK(memory.place_in(0, 0, 2, 64).owner() != first.owner());
}

TEST_CASE("places in the order of arrival lie side by side until their block is full") {
  const auto pages = std::make_shared<PayloadMemory>();
  BatchMemory memory(pages);
  const Bytes a = filled(memory.next_place(2, 64), 1);
  const Bytes b = filled(memory.next_place(2, 64), 2);
  const Bytes c = filled(memory.next_place(2, 64), 3);
  CHECK(join({a, b}, 64, *pages).data() == a.data());
  CHECK(c.owner() != a.owner());
  const Bytes joined = join({b, c}, 64, *pages);  // of two blocks
  REQUIRE(joined.size() == 128);
  CHECK(joined.data()[0] == std::byte{2});
  CHECK(joined.data()[127] == std::byte{3});
}

TEST_CASE("what is not there is joined as zeros, and what lies otherwise in its order") {
  const auto pages = std::make_shared<PayloadMemory>();
  BatchMemory memory(pages);
  const Bytes a = filled(memory.place_in(0, 0, 3, 8), 1);
  const Bytes c = filled(memory.place_in(0, 2, 3, 8), 3);
  const Bytes joined = join({c, {}, a}, 8, *pages);
  REQUIRE(joined.size() == 24);
  CHECK(joined.data()[0] == std::byte{3});
  CHECK(joined.data()[8] == std::byte{0});
  CHECK(joined.data()[15] == std::byte{0});
  CHECK(joined.data()[23] == std::byte{1});
  CHECK(join({Bytes(), Bytes()}, 8, *pages).size() == 16);
}

TEST_CASE("a block for messages of one size has no places for others") {
  const auto pages = std::make_shared<PayloadMemory>();
  BatchMemory memory(pages);
  CHECK(memory.place_in(0, 0, 2, 64).size() == 64);
  CHECK(memory.place_in(0, 1, 2, 32).empty());
}

}  // namespace batch_memory_test
}  // namespace batchrpc::env
