#include "session/payload_assembler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "batchrpc/base/error.hpp"
#include "largest_allocation.hpp"

namespace batchrpc {
namespace payload_assembler_test {

constexpr std::size_t kChunk = 256 * 1024;
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// One that expects the call 5, whose payloads have these sizes.
struct Fixture {
  explicit Fixture(const std::vector<std::size_t>& sizes) {
    Encoder encoder(wire::kEnvelopeWords);
    for (const std::size_t size : sizes)
      encoder.payloads().push_back(Bytes::allocate(size));
    wire::finish_frame(encoder, {.kind = wire::FrameKind::call, .id = 5});
    words = encoder.words();
    assembler.begin(wire::parse_frame(words), std::nullopt, nullptr);
  }
  /// A chunk of so many bytes comes.
  std::optional<PayloadAssembler::Whole> chunk(std::uint32_t payload, std::size_t size, int value) {
    const wire::FrameHeader header{
        .kind = wire::FrameKind::chunk, .number = payload, .id = 5, .value = size};
    const std::span<std::byte> room = assembler.room_for(header);
    REQUIRE(room.size() == size);
    std::memset(room.data(), value, size);
    return assembler.finish(header);
  }
  /// The call is held: by a gate of no session, so that nobody is told.
  std::shared_ptr<FlowControl> hold() {
    auto gate = std::make_shared<FlowControl>(std::weak_ptr<IncomingCalls>(), 5, 0);
    gate->hold();
    assembler.receive(5,
                      {.kept = kept,
                       .target = std::make_shared<detail::PayloadTarget>(
                           [this](std::size_t index, std::size_t size) -> std::span<std::byte> {
                             asked.push_back(index);
                             memory.push_back(Bytes::allocate(size));
                             return {memory.back().mutable_data(), size};
                           })},
                      gate);
    return gate;
  }

  PayloadAssembler assembler{std::uint64_t{1} << 32};
  std::vector<Word> words;
  std::shared_ptr<int> kept = std::make_shared<int>(1);
  std::vector<std::size_t> asked;
  std::vector<Bytes> memory;
};

bool is_filled(std::span<const std::byte> bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

TEST_CASE("memory for a payload is taken with its first chunk") {
  test::reset_largest_allocation();
  Fixture f({kMiB, 2 * kMiB});
  const std::size_t before = test::allocated_bytes();
  CHECK_FALSE(f.chunk(0, kMiB, 1));
  CHECK(test::allocated_bytes() < before + kMiB + kMiB / 2);
  const auto whole = f.chunk(1, 2 * kMiB, 2);
  REQUIRE(whole);
  CHECK(is_filled(whole->payloads[0].span(), 1));
  CHECK(is_filled(whole->payloads[1].span(), 2));
}

TEST_CASE("the first bytes of a large payload are set aside, so that they take little") {
  Fixture f({64 * kMiB, kMiB});
  const std::size_t before = test::allocated_bytes();
  constexpr std::size_t kSmall = 16 * 1024;
  for (const int value : {1, 2, 3}) {
    CHECK_FALSE(f.chunk(0, kSmall, value));
    CHECK_FALSE(f.chunk(1, 1, value));
  }
  CHECK(test::allocated_bytes() < before + 300 * 1024);
  CHECK_FALSE(f.chunk(1, kMiB - 3, 4));
  CHECK_FALSE(f.chunk(0, kSmall, 4));  // now it has memory
  CHECK(test::allocated_bytes() > before + 65 * kMiB);
  const auto whole = f.chunk(0, 64 * kMiB - 4 * kSmall, 5);
  REQUIRE(whole);
  for (const int value : {1, 2, 3, 4}) {
    const std::size_t i = static_cast<std::size_t>(value - 1);
    CHECK(is_filled(whole->payloads[0].span().subspan(i * kSmall, kSmall), value));
    CHECK(is_filled(whole->payloads[1].span().subspan(i, 1), value));
  }
  CHECK(is_filled(whole->payloads[0].span().subspan(4 * kSmall), 5));
  CHECK(is_filled(whole->payloads[1].span().subspan(3), 4));
}

TEST_CASE("a chunk that is cut off by a broken connection comes again in its place") {
  Fixture f({kMiB});
  CHECK_FALSE(f.chunk(0, 1000, 1));
  const wire::FrameHeader lost{.kind = wire::FrameKind::chunk, .number = 0, .id = 5, .value = 2000};
  std::memset(f.assembler.room_for(lost).data(), 7, 500);
  CHECK_FALSE(f.chunk(0, 3000, 2));
  const auto whole = f.chunk(0, kMiB - 4000, 3);
  REQUIRE(whole);
  CHECK(is_filled(whole->payloads[0].span().first(1000), 1));
  CHECK(is_filled(whole->payloads[0].span().subspan(1000, 3000), 2));
}

TEST_CASE("calls are told apart by all bits of their ids, and from replies") {
  Fixture f({kMiB});
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 63;
  for (const std::uint64_t id : {kHighest + 5, kHighest + 2, std::uint64_t{2}, ~std::uint64_t{0}}) {
    std::vector<Word> words = f.words;
    wire::set_id(words, id);
    f.assembler.begin(wire::parse_frame(words), std::nullopt, nullptr);
  }
  CHECK(f.assembler.calls() ==
        std::vector<std::uint64_t>{2, 5, kHighest + 2, kHighest + 5, ~std::uint64_t{0}});
  CHECK_FALSE(f.assembler.drop(~std::uint64_t{0} - 1));
  CHECK(f.assembler.drop(kHighest + 5));
  CHECK(f.chunk(0, kMiB, 1));
}

TEST_CASE("what comes before the gate is open is set aside, and then put where it belongs") {
  Fixture f({2 * kChunk, 3 * kChunk});
  const auto gate = f.hold();
  CHECK_FALSE(f.chunk(0, kChunk, 1));
  CHECK_FALSE(f.chunk(1, kChunk, 3));
  CHECK_FALSE(f.chunk(0, kChunk, 2));
  CHECK(f.asked.empty());
  CHECK(gate->received() > 0);
  gate->open();
  CHECK_FALSE(f.chunk(1, kChunk, 4));
  CHECK(f.asked == std::vector<std::size_t>{0, 1});
  const auto whole = f.chunk(1, kChunk, 5);
  REQUIRE(whole);
  CHECK(whole->kept == f.kept);
  for (const std::size_t i : {0U, 1U})
    CHECK(whole->payloads[i].data() == f.memory[i].data());
  const auto part = [&](std::size_t i, std::size_t at) {
    return whole->payloads[i].span().subspan(at * kChunk, kChunk);
  };
  CHECK((is_filled(part(0, 0), 1) && is_filled(part(0, 1), 2)));
  CHECK((is_filled(part(1, 0), 3) && is_filled(part(1, 1), 4) && is_filled(part(1, 2), 5)));
}

TEST_CASE("no more than 1 MiB is set aside, in all") {
  Fixture f({20 * kMiB, 20 * kMiB});
  const auto gate = f.hold();
  for (const std::uint32_t payload : {0U, 1U, 0U, 1U})
    CHECK_FALSE(f.chunk(payload, kChunk, 1));
  CHECK_THROWS_AS(f.assembler.room_for({.kind = wire::FrameKind::chunk, .id = 5, .value = 1}),
                  BadMessage);
  CHECK(f.asked.empty());
}

TEST_CASE("what is dropped or cleared is let go, and is not known any more") {
  for (const bool cleared : {true, false}) {
    Fixture f({kMiB});
    const auto gate = f.hold();
    CHECK_FALSE(f.chunk(0, kChunk, 1));
    CHECK(f.kept.use_count() == 2);
    while (cleared && !f.assembler.drop_some()) {
    }
    CHECK(f.assembler.drop(5).has_value() == !cleared);
    CHECK(f.kept.use_count() == 1);
    CHECK_FALSE(f.assembler.drop(5));
    CHECK_THROWS_AS(
        f.assembler.room_for({.kind = wire::FrameKind::chunk, .id = 5, .value = kChunk}),
        BadMessage);
    f.assembler.receive(5, {.kept = f.kept}, nullptr);
    CHECK(f.kept.use_count() == 1);
  }
}

TEST_CASE("many calls that are coming in are dropped by a few hundred at a time") {
  PayloadAssembler assembler(kMiB);
  constexpr std::uint64_t kCalls = 600;
  std::vector<Word> words = Fixture({kMiB}).words;
  for (std::uint64_t call = 0; call < kCalls; ++call) {
    wire::set_id(words, call);
    assembler.begin(wire::parse_frame(words), std::nullopt, nullptr);
  }
  CHECK_FALSE(assembler.drop_some());
  CHECK(assembler.calls().size() == kCalls - 256);
  CHECK_FALSE(assembler.drop_some());
  CHECK(assembler.drop_some());
  CHECK(assembler.calls().empty());
}

}  // namespace payload_assembler_test
}  // namespace batchrpc
