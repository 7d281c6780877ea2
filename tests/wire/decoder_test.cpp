#include "batchrpc/wire/decoder.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <list>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "batchrpc/base/error.hpp"
#include "wire/values.hpp"

namespace batchrpc {
namespace decoder_test {

using namespace wire_test;

constexpr Word struct_pointer(std::int32_t offset, unsigned data, unsigned pointers) {
  return Word{static_cast<std::uint32_t>(offset) << 2} | (Word{data} << 32) |
         (Word{pointers} << 48);
}
constexpr Word list_pointer(std::int32_t offset, unsigned size, std::uint64_t count) {
  return Word{1} | Word{static_cast<std::uint32_t>(offset) << 2} | (Word{size} << 32) |
         (count << 35);
}

/// What decoding a message whose root pointer is its first word throws, or "".
template <class... T>
std::string error_of(const std::vector<Word>& words, const DecodeLimits& limits = {}) {
  try {
    Decoder decoder(words, {}, limits);
    (void)decode_struct<T...>(decoder, 0);
  } catch (const BadMessage& error) {
    return error.what();
  }
  return "";
}

template <class... T>
bool decodes(const std::vector<Word>& words, const DecodeLimits& limits = {}) {
  return error_of<T...>(words, limits).empty();
}

TEST_CASE("pointers out of the message are refused", "[decoder]") {
  CHECK(decodes<int>({struct_pointer(0, 1, 0), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer(1, 1, 0), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer(-2, 1, 0), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer((1 << 29) - 1, 1, 0), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer(-(1 << 29), 1, 0), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer(0, 2, 0), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer(0, 1, 1), 7}));
  CHECK_FALSE(decodes<int>({struct_pointer(0, 0xffff, 0xffff), 7}));
  CHECK(decodes<int>({struct_pointer(-1, 1, 0)}));  // to itself: in bounds, hence data
  CHECK_FALSE(decodes<int>({}));
}

TEST_CASE("a struct may be shorter or longer than expected", "[decoder]") {
  const std::vector<Word> longer{struct_pointer(0, 2, 1), 7, 8, 0};
  Decoder decoder(longer, {});
  CHECK(decode_struct<std::uint64_t>(decoder, 0) == std::tuple<std::uint64_t>(7));
  const std::vector<Word> shorter{struct_pointer(0, 1, 0), 7};
  Decoder other(shorter, {});
  CHECK(decode_struct<std::uint64_t, std::uint64_t, std::string>(other, 0) ==
        std::tuple<std::uint64_t, std::uint64_t, std::string>(7, 0, ""));
  const std::vector<Word> empty{struct_pointer(-1, 0, 0)};
  Decoder third(empty, {});
  CHECK(decode_struct<std::uint64_t>(third, 0) == std::tuple<std::uint64_t>(0));
}

TEST_CASE("far pointers, capabilities and the wrong kind of pointer are refused", "[decoder]") {
  CHECK(error_of<int>({2}).find("another segment") != std::string::npos);
  CHECK(error_of<int>({3}).find("capability") != std::string::npos);
  CHECK(error_of<int>({list_pointer(0, 4, 2), 7}).find("a list where a struct") !=
        std::string::npos);
  CHECK(error_of<std::string>({struct_pointer(0, 0, 1), struct_pointer(0, 1, 0), 7})
            .find("a struct where a list") != std::string::npos);
  CHECK_FALSE(decodes<std::string>({struct_pointer(0, 0, 1), 2}));
}

TEST_CASE("lists that claim more elements than there is room are refused", "[decoder]") {
  using Ints = std::vector<int>;
  CHECK(decodes<Ints>({struct_pointer(0, 0, 1), list_pointer(0, 4, 2), 7}));
  CHECK_FALSE(decodes<Ints>({struct_pointer(0, 0, 1), list_pointer(0, 4, 3), 7}));
  CHECK_FALSE(decodes<Ints>({struct_pointer(0, 0, 1), list_pointer(0, 4, (1 << 29) - 1), 7}));
  CHECK_FALSE(decodes<Ints>({struct_pointer(0, 0, 1), list_pointer(1, 4, 2), 7}));
  // Sizes: of bits, of other integers, of pointers.
  for (const unsigned size : {0U, 1U, 2U, 3U, 5U, 6U}) {
    CHECK_FALSE(decodes<Ints>({struct_pointer(0, 0, 1), list_pointer(0, size, 1), 7}));
  }
}

TEST_CASE("a list of structs must keep what its tag says", "[decoder]") {
  using Points = std::vector<Point>;
  const auto message = [](Word tag, unsigned words = 2) {
    return std::vector<Word>{struct_pointer(0, 0, 1), list_pointer(0, 7, words), tag, 1, 2};
  };
  CHECK(decodes<Points>(message(struct_pointer(1, 2, 0))));
  CHECK(decodes<Points>(message(struct_pointer(2, 1, 0))));
  CHECK_FALSE(decodes<Points>(message(struct_pointer(2, 2, 0))));
  CHECK_FALSE(decodes<Points>(message(struct_pointer(1, 2, 1))));  // one word too many
  CHECK_FALSE(decodes<Points>(message(struct_pointer(3, 1, 0))));
  CHECK_FALSE(decodes<Points>(message(struct_pointer((1 << 29) - 1, 0xffff, 0xffff))));
  CHECK_FALSE(decodes<Points>(message(list_pointer(1, 4, 2))));
  CHECK_FALSE(decodes<Points>(message(struct_pointer(1, 2, 0), 3)));
  CHECK_FALSE(decodes<Points>({struct_pointer(0, 0, 1), list_pointer(0, 7, 0)}));  // no tag
  CHECK(decodes<Points>({struct_pointer(0, 0, 1), list_pointer(0, 7, 0), 0}));
}

TEST_CASE("elements may be structs that begin with what was expected", "[decoder]") {
  // List(Struct{3, 4}), List(Struct{5, 6}) read as List(Int64).
  const std::vector<Word> words{
      struct_pointer(0, 0, 1), list_pointer(0, 7, 4), struct_pointer(2, 2, 0), 3, 4, 5, 6};
  Decoder decoder(words, {});
  CHECK(std::get<0>(decode_struct<std::vector<std::int64_t>>(decoder, 0)) ==
        std::vector<std::int64_t>{3, 5});
  CHECK_FALSE(decodes<std::vector<bool>>(words));
  CHECK_FALSE(decodes<std::vector<std::string>>(words));
  CHECK_FALSE(decodes<std::string>(words));
  CHECK_FALSE(decodes<std::span<const std::int64_t>>(words));
}

TEST_CASE("numbers may stand where structs that begin with them were expected", "[decoder]") {
  const std::vector<Word> words{struct_pointer(0, 0, 1), list_pointer(0, 4, 3), (Word{2} << 32) | 1,
                                3};
  Decoder decoder(words, {});
  CHECK(identical(std::get<0>(decode_struct<std::vector<Point>>(decoder, 0)),
                  std::vector<Point>{{1, 0}, {2, 0}, {3, 0}}));
  const std::vector<Word> bits{struct_pointer(0, 0, 1), list_pointer(0, 1, 3), 7};
  CHECK_FALSE(decodes<std::vector<Point>>(bits));
}

TEST_CASE("text must end with a NUL", "[decoder]") {
  constexpr Word kAbc = 0x636261;
  CHECK(decodes<std::string>({struct_pointer(0, 0, 1), list_pointer(0, 2, 4), kAbc}));
  CHECK_FALSE(decodes<std::string>({struct_pointer(0, 0, 1), list_pointer(0, 2, 3), kAbc}));
  CHECK_FALSE(decodes<std::string>({struct_pointer(0, 0, 1), list_pointer(0, 2, 0)}));
  CHECK_FALSE(decodes<std::string>({struct_pointer(0, 0, 1), list_pointer(0, 3, 4), kAbc}));
  CHECK(decodes<std::string>({struct_pointer(0, 0, 1), 0}));
}

TEST_CASE("elements without a size cost the limit a word each", "[decoder]") {
  constexpr std::uint64_t kMost = (1U << 29) - 1;
  const std::vector<Word> voids{struct_pointer(0, 0, 1), list_pointer(0, 0, kMost)};
  CHECK(error_of<std::vector<std::monostate>>(voids).find("traversal") != std::string::npos);
  const std::vector<Word> empties{struct_pointer(0, 0, 1), list_pointer(0, 7, 0),
                                  struct_pointer(static_cast<std::int32_t>(kMost), 0, 0)};
  CHECK(error_of<std::vector<Empty>>(empties).find("traversal") != std::string::npos);
  CHECK(error_of<std::vector<Mixed>>(empties).find("traversal") != std::string::npos);
  CHECK(error_of<std::vector<int>>(empties).find("another size") != std::string::npos);
}

TEST_CASE("structs that lack all their fields in a list are refused, however few", "[decoder]") {
  const auto list_of = [](std::int32_t count) {
    return std::vector<Word>{struct_pointer(0, 0, 1), list_pointer(0, 7, 0),
                             struct_pointer(count, 0, 0)};
  };
  CHECK_THAT(error_of<std::vector<Mixed>>(list_of(3)), Catch::Contains("without their fields"));
  CHECK_THAT((error_of<std::map<int, int>>(list_of(3))), Catch::Contains("without their fields"));
  CHECK_THAT(error_of<std::deque<Point>>({struct_pointer(0, 0, 1), list_pointer(0, 0, 3)}),
             Catch::Contains("without their fields"));
  CHECK(decodes<std::vector<Mixed>>(list_of(0)));
  CHECK(decodes<std::vector<Empty>>(list_of(3)));
  CHECK(decodes<std::vector<std::monostate>>({struct_pointer(0, 0, 1), list_pointer(0, 0, 3)}));
}

TEST_CASE("what several pointers refer to costs each time", "[decoder]") {
  // A thousand pointers to one list of a thousand numbers.
  constexpr std::size_t kMany = 1000;
  std::vector<Word> words{struct_pointer(0, 0, 1), list_pointer(0, 6, kMany)};
  for (std::size_t i = 0; i < kMany; ++i) {
    words.push_back(list_pointer(static_cast<std::int32_t>(kMany - 1 - i), 5, kMany));
  }
  words.resize(words.size() + kMany);
  using Lists = std::vector<std::vector<double>>;
  CHECK(decodes<Lists>(words));
  CHECK_FALSE(decodes<Lists>(words, {.traversal_words = 100'000}));
  CHECK(decodes<Lists>(words, {.traversal_words = 1'010'000}));
}

TEST_CASE("values in memory count where they are larger than on the wire", "[decoder]") {
  // A list of null pointers, each of which becomes a string of 32 bytes.
  std::vector<Word> words{struct_pointer(0, 0, 1), list_pointer(0, 6, 1000)};
  words.resize(2 + 1000);
  CHECK_FALSE(decodes<std::vector<std::string>>(words, {.traversal_words = 3000}));
  CHECK(decodes<std::vector<std::string>>(words, {.traversal_words = 4100}));
}

TEST_CASE("the nodes and blocks of containers count with their elements", "[decoder]") {
  // A million bits, 128 KiB.
  const std::vector<Word> bits = [] {
    std::vector<Word> words{struct_pointer(0, 0, 1), list_pointer(0, 1, 1'000'000)};
    words.resize(words.size() + 15'625);
    return words;
  }();
  const auto takes = [&]<class C>(std::type_identity<C>, std::size_t bytes) {
    return decodes<C>(bits, {.traversal_words = bytes / 8}) &&
           !decodes<C>(bits, {.traversal_words = bytes / 16});
  };
  CHECK(takes(std::type_identity<std::vector<bool>>(), 1'000'100));
  CHECK(takes(std::type_identity<std::deque<bool>>(), 2'001'000));
  CHECK(takes(std::type_identity<std::list<bool>>(), 49'000'100));
  // With the default limit of 64 MiB it is refused before it takes hundreds.
  std::vector<Word> many{struct_pointer(0, 0, 1), list_pointer(0, 1, 16'000'000)};
  many.resize(many.size() + 250'000);
  CHECK(decodes<std::vector<bool>>(many));
  CHECK(error_of<std::list<bool>>(many).find("traversal") != std::string::npos);

  // Each element in a block of its own, not quite full.
  using Large = std::array<std::int64_t, 40>;
  static_assert(detail::memory_of_element<std::deque<Large>>() >= 512);
  static_assert(detail::memory_of_element<std::vector<Large>>() == sizeof(Large));
}

/// A number whose hash is always the same.
struct Collider {
  std::size_t operator()(int /*number*/) const { return 1; }
};

TEST_CASE("hashed keys that were chosen to collide are refused in time", "[decoder]") {
  const auto message = [](const auto& value) {
    Encoder encoder(1);
    encode_struct(encoder, 0, value);
    return encoder.words();
  };
  std::set<int> few;
  std::set<int> many;
  std::map<int, int> few_pairs;
  std::map<int, int> many_pairs;
  for (int i = 0; i < 100'000; ++i) {
    many.insert(i);
    many_pairs[i] = i;
    if (i < 200) few.insert(i);
    if (i < 200) few_pairs[i] = i;
  }
  using BadSet = std::unordered_set<int, Collider>;
  using BadMap = std::unordered_map<int, int, Collider>;
  CHECK(decodes<std::unordered_set<int>>(message(many)));
  CHECK(decodes<std::unordered_map<int, int>>(message(many_pairs)));
  CHECK(decodes<BadSet>(message(few)));
  CHECK(decodes<BadMap>(message(few_pairs)));
  CHECK(error_of<BadSet>(message(many)).find("same hash") != std::string::npos);
  CHECK(error_of<BadMap>(message(many_pairs)).find("same hash") != std::string::npos);

  // As an attacker would, who knows the number of buckets.
  std::unordered_set<std::uint64_t> probe;
  probe.reserve(60'000);
  std::set<std::uint64_t> chosen;
  for (std::uint64_t i = 0; i < 60'000; ++i)
    chosen.insert(i * probe.bucket_count());
  CHECK(error_of<std::unordered_set<std::uint64_t>>(message(chosen)).find("same hash") !=
        std::string::npos);

  // Equal keys of a multimap share a bucket by right.
  std::unordered_multimap<int, int> equal;
  for (int i = 0; i < 1000; ++i)
    equal.emplace(7, i);
  CHECK(decodes<std::unordered_multimap<int, int>>(message(equal)));
}

TEST_CASE("the limit grows with the message when it is not set", "[decoder]") {
  const std::vector<double> large(std::size_t{3} << 20);
  Encoder encoder(1);
  encode_struct(encoder, 0, large, large, large, large);
  Decoder decoder(encoder.words(), {});
  using Doubles = std::vector<double>;
  CHECK(std::get<3>(decode_struct<Doubles, Doubles, Doubles, Doubles>(decoder, 0)).size() ==
        large.size());
}

TEST_CASE("nesting is limited to 64 levels, or what is set, exactly", "[decoder]") {
  const auto chain = [](int links) {
    Tree tree{};
    for (int i = 0; i < links; ++i) {
      Tree outer{};
      outer.next = std::make_unique<Tree>(std::move(tree));
      tree = std::move(outer);
    }
    return tree;
  };
  const auto encoded = [](const auto& value) {
    Encoder encoder(1);
    encode_struct(encoder, 0, value);
    return encoder.words();
  };
  const auto depth = [&](int links) { return encoded(chain(links)); };
  using Option = std::optional<Tree>;
  using Options = std::vector<Option>;
  // The struct of arguments, each tree, each pointer to the next one, and the last one's list of
  // children: 2 n + 3 levels.
  for (const int links : {0, 1, 30, 40}) {
    const auto levels = static_cast<unsigned>(2 * links + 3);
    CHECK(decodes<Tree>(depth(links), {.nesting = levels}));
    CHECK(error_of<Tree>(depth(links), {.nesting = levels - 1}).find("nested") !=
          std::string::npos);
  }
  CHECK(decodes<Tree>(depth(30)));                     // 63
  CHECK(decodes<Option>(encoded(Option(chain(30)))));  // 64
  Options options;
  options.emplace_back(chain(30));
  CHECK_FALSE(decodes<Options>(encoded(options)));  // 65
  CHECK_FALSE(decodes<Tree>(depth(31)));            // 65

  // A struct whose list of children is itself.
  const std::vector<Word> loop{struct_pointer(0, 0, 1), struct_pointer(0, 1, 2), 1,
                               list_pointer(-3, 6, 1), 0};
  CHECK_FALSE(decodes<Tree>(loop));
}

TEST_CASE("payloads out of range are refused", "[decoder]") {
  const std::vector<Bytes> payloads{Bytes::copy(as_bytes("abc"))};
  const Decoder decoder({}, payloads);
  CHECK(decoder.payload(0).data() == payloads[0].data());
  CHECK_THROWS_AS(decoder.payload(1), BadMessage);
  CHECK_THROWS_AS(decoder.payload(UINT32_MAX), BadMessage);
}

TEST_CASE("each payload may be copied once, or as often as the limit allows", "[decoder]") {
  Encoder encoder(1);
  const std::vector<std::byte> large(100'000);
  encode_struct(encoder, 0, large, large);
  const auto decode = [&](const DecodeLimits& limits) {
    Decoder decoder(encoder.words(), encoder.payloads(), limits);
    return decode_struct<std::vector<std::byte>, std::vector<std::byte>>(decoder, 0);
  };
  CHECK_NOTHROW(decode({}));
  CHECK_THROWS_AS(decode({.payload_bytes = 199'999}), BadMessage);
  // Both arguments say that they are the first payload, and it is the only one.
  for (Word& word : encoder.words()) {
    if (word == (1 | (Word{1} << 32))) word = 1;
  }
  encoder.payloads().pop_back();
  CHECK_THROWS_AS(decode({}), BadMessage);
  CHECK_NOTHROW(decode({.payload_bytes = 200'000}));
}

}  // namespace decoder_test
}  // namespace batchrpc
