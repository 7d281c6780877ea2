#include "batchrpc/wire/encoder.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace encoder_test {

using detail::ElementSize;

TEST_CASE("reserved words are zero, also when an encoder is used again", "[encoder]") {
  Encoder encoder(3);
  CHECK(encoder.words() == std::vector<Word>(3));
  encoder.words() = {1, 2, 3, 4};
  encoder.reset(2);
  CHECK(encoder.words() == std::vector<Word>(2));
}

TEST_CASE("reset keeps the memory", "[encoder]") {
  Encoder encoder;
  encoder.words().resize(1000);
  encoder.reset(4);
  CHECK(encoder.words().capacity() >= 1000);
}

TEST_CASE("payloads are numbered as they come, and shared", "[encoder]") {
  Encoder encoder;
  const Bytes bytes = Bytes::copy(as_bytes("abc"));
  CHECK(encoder.add_payload(bytes) == 0);
  CHECK(encoder.add_payload({}) == 1);
  CHECK(encoder.payloads()[0].data() == bytes.data());
}

TEST_CASE("a struct is zeroed words at the end and a pointer to them", "[encoder]") {
  Encoder encoder(2);
  CHECK(encoder.add_struct(0, {1, 2}) == 2);
  CHECK(encoder.words() == std::vector<Word>{0x0002'0001'0000'0004U, 0, 0, 0, 0});
  CHECK(encoder.add_struct(1, {20, 0}) == 5);
  CHECK(encoder.words().size() == 25);
}

TEST_CASE("text ends with a NUL and is padded with zeros", "[encoder]") {
  Encoder encoder(2);
  encoder.add_text(0, "1234567");
  encoder.add_text(1, "12345678");
  CHECK(encoder.words().size() == 2 + 1 + 2);
  CHECK(encoder.words()[0] == (Word{1} | (1U << 2) | (Word{2} << 32) | (Word{8} << 35)));
  CHECK(encoder.words()[1] == (Word{1} | (1U << 2) | (Word{2} << 32) | (Word{9} << 35)));
  CHECK(encoder.words()[4] == 0);
}

TEST_CASE("a list of structs has a tag", "[encoder]") {
  Encoder encoder(1);
  CHECK(encoder.add_structs(0, 3, {1, 1}) == 2);
  CHECK(encoder.words().size() == 1 + 1 + 6);
  CHECK(encoder.words()[0] == (Word{1} | (Word{7} << 32) | (Word{6} << 35)));
  CHECK(encoder.words()[1] == ((Word{3} << 2) | (Word{1} << 32) | (Word{1} << 48)));
}

TEST_CASE("lists beyond Cap'n Proto's limit are refused before memory is taken", "[encoder]") {
  Encoder encoder(1);
  constexpr std::size_t kMost = (std::size_t{1} << 29) - 1;
  CHECK_NOTHROW(encoder.add_list(0, ElementSize::none, kMost));
  CHECK_THROWS_AS(encoder.add_list(0, ElementSize::none, kMost + 1), InvalidArgument);
  CHECK_THROWS_AS(encoder.add_list(0, ElementSize::byte, kMost + 1), InvalidArgument);
  CHECK_THROWS_AS(encoder.add_list(0, ElementSize::eight_bytes, SIZE_MAX / 2), InvalidArgument);
  CHECK_THROWS_AS(encoder.add_structs(0, std::size_t{1} << 28, {1, 1}), InvalidArgument);
  CHECK_THROWS_AS(encoder.add_text(0, {"", kMost}), InvalidArgument);
  CHECK_THROWS_AS(encoder.add_block(0, ElementSize::byte, nullptr, kMost + 1, kMost + 1),
                  InvalidArgument);
  CHECK(encoder.words().size() == 1);
}

}  // namespace encoder_test
}  // namespace batchrpc
