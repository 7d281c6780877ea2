#include "wire/flatten.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/error.hpp"
#include "wire/capnp_values.hpp"

namespace batchrpc {
namespace {

using namespace wire_test;

std::span<const std::byte> bytes_of(const std::vector<Word>& words) {
  return std::as_bytes(std::span(words));
}

std::vector<Word> sample() {
  Encoder encoder(1);
  encode_struct(encoder, 0, 7, std::vector<std::string>{"a", "bcd"}, Point{1, 2});
  return encoder.words();
}

void check_sample(const std::vector<Word>& words) {
  Decoder decoder(words, {});
  const auto [a, b, c] = decode_struct<int, std::vector<std::string>, Point>(decoder, 0);
  CHECK(a == 7);
  CHECK(b == std::vector<std::string>{"a", "bcd"});
  CHECK(identical(c, Point{1, 2}));
}

TEST_CASE("a message of one segment stays the same", "[flatten]") {
  check_sample(flatten(bytes_of(framed(sample())), 1000));
}

TEST_CASE("a message that does not lie at a word's boundary is read all the same", "[flatten]") {
  const auto words = framed(sample());
  std::vector<std::byte> moved(words.size() * sizeof(Word) + 1);
  std::memcpy(moved.data() + 1, words.data(), words.size() * sizeof(Word));
  check_sample(flatten(std::span(moved).subspan(1), 1000));
}

TEST_CASE("far and double-far pointers are followed", "[flatten]") {
  // Segment 0: a far pointer; segment 1: a landing pad.
  // One word, then two: the table has the number of segments less one, and their sizes.
  const std::vector<Word> message{Word{1} | (Word{1} << 32), Word{2}, 2 | (Word{1} << 32),
                                  Word{1} << 32, 7};
  const auto words = flatten(bytes_of(message), 100);
  Decoder decoder(words, {});
  CHECK(std::get<0>(decode_struct<int>(decoder, 0)) == 7);

  const std::vector<Word> twice{Word{2} | (Word{1} << 32),
                                Word{2} | (Word{1} << 32),
                                6 | (Word{1} << 32),  // segment 0: a double-far pointer
                                2 | (Word{2} << 32),
                                Word{1} << 32,  // segment 1: where, and what
                                9};             // segment 2
  const auto again = flatten(bytes_of(twice), 100);
  Decoder other(again, {});
  CHECK(std::get<0>(decode_struct<int>(other, 0)) == 9);
}

TEST_CASE("what is no message is a BadMessage", "[flatten]") {
  CHECK_THROWS_AS(flatten({}, 1000), BadMessage);
  const auto good = framed(sample());
  for (std::size_t words = 0; words < good.size(); ++words) {
    const std::vector<Word> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(words));
    CHECK_THROWS_AS(flatten(bytes_of(cut), 1000), BadMessage);
  }
  const std::vector<Word> many_segments{0xffffffffU, 0, 0, 0};
  CHECK_THROWS_AS(flatten(bytes_of(many_segments), 1000), BadMessage);
  const std::vector<Word> far_away{Word{1} << 32, 2 | (Word{77} << 32)};
  CHECK_THROWS_AS(flatten(bytes_of(far_away), 1000), BadMessage);
  const std::vector<Word> capability{Word{1} << 32, 3};
  CHECK_THROWS_AS(flatten(bytes_of(capability), 1000), BadMessage);
}

TEST_CASE("the copy keeps the traversal limit, whatever refers to whatever", "[flatten]") {
  CHECK_THROWS_AS(flatten(bytes_of(framed(sample())), 5), BadMessage);
  // A hundred pointers to one list of a hundred words, of which each copy would have its own.
  constexpr std::size_t kMany = 100;
  std::vector<Word> words{Word{1} | (Word{6} << 32) | (Word{kMany} << 35)};
  for (std::size_t i = 0; i < kMany; ++i) {
    words.push_back(Word{1} | (Word{kMany - 1 - i} << 2) | (Word{5} << 32) | (Word{kMany} << 35));
  }
  words.resize(words.size() + kMany);
  CHECK_THROWS_AS(flatten(bytes_of(framed(words)), 5000), BadMessage);
  CHECK(flatten(bytes_of(framed(words)), 20000).size() == 1 + kMany + kMany * kMany);
}

TEST_CASE("random bytes are flattened or refused", "[flatten]") {
  Random random(3);
  const auto good = framed(sample());
  for (int i = 0; i < 3000; ++i) {
    std::vector<Word> words = good;
    for (std::size_t n = 1 + random.below(3); n > 0; --n) {
      words[random.below(words.size())] ^= Word{1} << random.below(64);
    }
    std::size_t size = 0;
    try {
      size = flatten(bytes_of(words), 1000).size();
    } catch (const BadMessage&) {
    }
    REQUIRE(size <= 1001);
  }
}

}  // namespace
}  // namespace batchrpc
