// Frames that are none.
#include <catch2/catch.hpp>
#include <random>
#include <stdexcept>

#include "batchrpc/base/error.hpp"
#include "wire/call_frame.hpp"

namespace batchrpc {
namespace frame_hostile_test {

using test::call_frame;
using wire::FrameKind;

TEST_CASE("only the beginning of a single-segment message is the beginning of a frame") {
  CHECK(wire::frame_words(Word{9} << 32) == 10);
  CHECK(wire::frame_words((Word{9} << 32) | 1) == std::nullopt);  // two segments
  CHECK(wire::frame_words(~Word{0}) == std::nullopt);
  CHECK(wire::frame_words(0xffffffff00000000) == 0x100000000);
}

TEST_CASE("a frame whose root is another struct is refused") {
  auto words = wire::plain_frame({.kind = FrameKind::ping});
  words[1] ^= Word{1} << 32;
  CHECK_THROWS_AS(wire::parse_frame(words), BadMessage);
  words[1] ^= Word{1} << 32;
  CHECK_NOTHROW(wire::parse_frame(words));
  words.pop_back();
  CHECK_THROWS_AS(wire::parse_frame(words), BadMessage);
}

TEST_CASE("mutated frames either parse or throw BadMessage, and nothing is read outside of them") {
  // Each copy lies in memory of its own size, so that the address sanitizer sees a step outside.
  std::mt19937_64 random(7);
  const std::vector<std::vector<Word>> frames{
      wire::hello_frame({.name = "worker1", .job = "job"}),
      wire::definition_frame({.number = 1, .name = "add", .signature = "i32(i32)"}),
      call_frame({Bytes::allocate(10), Bytes::allocate(20000)}, {.id = 5}),
      wire::error_frame(3, std::make_exception_ptr(std::runtime_error("what"))),
      wire::goodbye_frame({.code = 1, .reason = "because"}),
      wire::plain_frame({.kind = FrameKind::chunk, .value = 100})};
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Word> words = frames[random() % frames.size()];
    const auto changes = 1 + random() % 3;
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t at = random() % words.size();
      words[at] = random() % 4 == 0 ? random() : words[at] ^ (Word{1} << (random() % 64));
    }
    if (random() % 8 == 0) words.resize(1 + random() % words.size());
    words.shrink_to_fit();
    try {
      const auto frame = wire::parse_frame(words);
      CHECK(frame.payload_sizes.size() <= 4096);
      switch (frame.header.kind) {
        case FrameKind::hello:
          (void)wire::read_hello(frame);
          break;
        case FrameKind::define:
          (void)wire::read_definition(frame);
          break;
        case FrameKind::error:
          (void)wire::read_error(frame);
          break;
        case FrameKind::goodbye:
          (void)wire::read_goodbye(frame);
          break;
        default:
          break;
      }
    } catch (const BadMessage&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

}  // namespace frame_hostile_test
}  // namespace batchrpc
