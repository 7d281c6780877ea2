#include "batchrpc/wire/codec.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/error.hpp"
#include "wire/values.hpp"

namespace batchrpc {
namespace codec_test {

using namespace wire_test;

struct Encoded;
union EncodedUnion;

}  // namespace codec_test

template <>
struct Codec<codec_test::Encoded> {
  using Wire = int;
  static Wire encode(const codec_test::Encoded& value);
  static codec_test::Encoded decode(Wire wire);
};
template <>
struct Codec<codec_test::EncodedUnion> {
  using Wire = int;
  static Wire encode(const codec_test::EncodedUnion& value);
  static codec_test::EncodedUnion decode(Wire wire);
};

namespace codec_test {

TEST_CASE("the pointer to the arguments may be anywhere among the reserved words", "[codec]") {
  Encoder encoder(10);
  encoder.words()[3] = 42;
  encode_struct(encoder, 7, 1, 2.5, "text");
  CHECK(encoder.words()[3] == 42);
  Decoder decoder(encoder.words(), encoder.payloads());
  CHECK(decode_struct<int, double, std::string>(decoder, 7) ==
        std::tuple<int, double, std::string>(1, 2.5, "text"));
  CHECK_THROWS_AS(decode_struct<int>(decoder, encoder.words().size()), BadMessage);
}

TEST_CASE("no arguments are an empty struct", "[codec]") {
  Encoder encoder(1);
  encode_struct<>(encoder, 0);
  CHECK(encoder.words() == std::vector<Word>{0xfffffffcU});
  Decoder decoder(encoder.words(), {});
  CHECK(decode_struct<>(decoder, 0) == std::tuple<>());
}

TEST_CASE("arguments of a sender that knew fewer are zero or empty", "[codec]") {
  Encoder encoder(1);
  encode_struct<int>(encoder, 0, 7);
  Decoder decoder(encoder.words(), {});
  const auto [a, b, c, d, e, f, g] =
      decode_struct<int, double, std::string, std::vector<int>, Mixed, std::optional<int>,
                    std::array<int, 2>>(decoder, 0);
  CHECK(a == 7);
  CHECK(b == 0);
  CHECK(c.empty());
  CHECK(d.empty());
  CHECK(identical(e, Mixed{}));
  CHECK(f == std::nullopt);
  CHECK(g == std::array<int, 2>{});

  const std::vector<Word> null(1);
  Decoder of_null(null, {});
  CHECK(decode_struct<int, std::string>(of_null, 0) == std::tuple<int, std::string>());
}

TEST_CASE("arguments that the receiver does not know are ignored", "[codec]") {
  Encoder encoder(1);
  encode_struct(encoder, 0, true, std::string("kept"), 3.5, std::string("ignored"), Point{1, 2});
  Decoder decoder(encoder.words(), {});
  CHECK(decode_struct<bool, std::string>(decoder, 0) ==
        std::tuple<bool, std::string>(true, "kept"));
}

TEST_CASE("an encoder is as new after reset", "[codec]") {
  Encoder encoder(2);
  encode_struct(encoder, 0, std::string("abc"), Bytes::allocate(100000));
  CHECK(encoder.payloads().size() == 1);
  encoder.reset(1);
  CHECK(encoder.words() == std::vector<Word>{0});
  CHECK(encoder.payloads().empty());
}

TEST_CASE("scalars lie where Cap'n Proto's compiler puts them", "[codec]") {
  Encoder encoder(1);
  encode_struct(encoder, 0, 0x11223344, true, std::uint8_t{0x55}, 1.0);
  CHECK(encoder.words() ==
        std::vector<Word>{(Word{2} << 32), 0x0000550111223344U, 0x3ff0000000000000U});
}

struct StartsWithUnion {
  union {
    int whole;
    float real;
  };
};
struct EndsWithUnion {
  int small[3];
  std::string text;
  std::optional<std::vector<int>> list;
  union {
    int whole;
    float real;
  };
};
struct HasNamedUnion {
  int id;
  StartsWithUnion either;
};
/// Has members from which a union could be made, but none that is one.
struct HasNoUnion {
  Point point;
  std::variant<int, float> either;
  std::optional<int> maybe;
  std::array<int, 2> pair;
};
/// A codec of its own makes a type codable, and so the structs that contain it.
struct Encoded {
  union {
    int whole;
    float real;
  };
};
union EncodedUnion {
  int whole;
  float real;
};
struct HasEncoded {
  Encoded first;
  int second;
};
struct HasEncodedUnion {
  int first;
  EncodedUnion second;
};

TEST_CASE("a struct with a union is refused, unless the union has a codec", "[codec]") {
  STATIC_REQUIRE_FALSE(Codable<StartsWithUnion>);
  STATIC_REQUIRE_FALSE(Codable<EndsWithUnion>);
  STATIC_REQUIRE_FALSE(Codable<HasNamedUnion>);
  STATIC_REQUIRE(Codable<HasNoUnion>);
  STATIC_REQUIRE(Codable<HasEncoded>);
  STATIC_REQUIRE(Codable<HasEncodedUnion>);
}

}  // namespace codec_test
}  // namespace batchrpc
