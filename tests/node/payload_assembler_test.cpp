#include "session/payload_assembler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "batchrpc/base/error.hpp"
#include "node/largest_allocation.hpp"

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

TEST_CASE("what comes before the gate is open is set aside, and then put where it belongs") {
  Fixture f({2 * kChunk, 3 * kChunk});
  const auto gate = f.hold();
  CHECK_FALSE(f.chunk(0, kChunk, 1));
  CHECK_FALSE(f.chunk(1, kChunk, 3));
  CHECK_FALSE(f.chunk(0, kChunk, 2));
  CHECK(f.asked.empty());
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
    if (cleared) f.assembler.clear();
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

}  // namespace payload_assembler_test
}  // namespace batchrpc
