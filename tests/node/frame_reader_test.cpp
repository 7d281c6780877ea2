#include "session/frame_reader.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "largest_allocation.hpp"
#include "node/raw_frames.hpp"
#include "session/scratch.hpp"

namespace batchrpc {
namespace frame_reader_test {

using wire::FrameKind;
using Octets = std::vector<std::byte>;

void append(Octets& bytes, const std::vector<Word>& words) {
  const auto view = std::as_bytes(std::span(words));
  bytes.insert(bytes.end(), view.begin(), view.end());
}

std::vector<Word> ping(std::uint64_t id) {
  return wire::plain_frame({.kind = FrameKind::ping, .id = id});
}

// A frame with an inline payload, whose bytes are behind it.
std::vector<Word> frame_with_payload(std::uint64_t id, std::size_t size) {
  Encoder encoder(wire::kEnvelopeWords);
  encoder.add_payload(Bytes::copy(Octets(size)));
  wire::finish_frame(encoder, {.kind = FrameKind::call, .id = id});
  std::vector<Word> words = encoder.words();
  words.resize(words.size() + wire::padded(size) / sizeof(Word));
  return words;
}

// A chunk of `size` bytes, each of the value `filling`, with its padding.
void append_chunk(Octets& bytes, std::uint64_t id, std::size_t size, int filling) {
  append(bytes, wire::plain_frame({.kind = FrameKind::chunk, .id = id, .value = size}));
  bytes.resize(bytes.size() + size, static_cast<std::byte>(filling));
  bytes.resize(bytes.size() + wire::padded(size) - size);
}

/// Takes frames, and gives memory to the chunks of some calls.
class Frames final : public FrameSink {
 public:
  void on_frame(const wire::FrameView& frame, std::vector<Bytes>& payloads) override {
    std::string event = "frame " + std::to_string(frame.header.id);
    for (const Bytes& payload : payloads)
      event += " with " + std::to_string(payload.size());
    events.push_back(std::move(event));
    if (at_frame) at_frame();
  }
  void on_dropped_frame(const DroppedFrame& frame) override {
    std::string event = "dropped " + std::to_string(frame.header.id) +
                        (frame.no_memory ? ": no memory" : " of " + std::to_string(frame.bytes));
    for (const std::uint64_t size : frame.payload_sizes)
      event += " with " + std::to_string(size);
    events.push_back(std::move(event));
  }
  void on_dropped_chunk() override {}
  std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) override {
    if (at_chunk) at_chunk();
    if (chunk.id == kDropped) return {};
    memory.assign(chunk.value, std::byte{0});
    return memory;
  }
  void on_chunk(const wire::FrameHeader& chunk) override {
    const bool is_filled = std::all_of(memory.begin(), memory.end(),
                                       [&](std::byte byte) { return byte == memory.front(); });
    events.push_back("chunk " + std::to_string(chunk.id) + (is_filled ? "" : ", mixed up"));
  }
  void on_closed(const std::string& /*why*/, bool /*protocol_error*/) override {}

  static constexpr std::uint64_t kDropped = 99;
  std::vector<std::string> events;
  Octets memory;
  std::function<void()> at_frame;
  std::function<void()> at_chunk;
};

/// A stream of which every read returns `step` bytes at most.
struct Reading {
  /// One round; reads until there is nothing left, or the round is over.
  void round() {
    const Lease<ReadBuffer> buffer;
    FrameReader::Round round(reader, frames, buffer->bytes);
    current = &round;
    while (!bytes.empty() && !round.is_over()) {
      std::size_t room = step;
      std::size_t count = 0;
      for (const std::span<std::byte> target : reader.buffers(round)) {
        const std::size_t size = std::min({target.size(), room, bytes.size() - count});
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(count), size, target.begin());
        count += size;
        room -= size;
      }
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      reader.take(round, count);
    }
    current = nullptr;
  }

  Frames frames{};
  FrameReader reader{{.before_hello_bytes = 1024, .frame_bytes = 1024 * 1024}};
  FrameReader::Round* current = nullptr;
  Octets bytes{};
  std::size_t step = std::size_t{1} << 40;
};

TEST_CASE("a frame reader finds frames, payloads and chunks, however few bytes each read returns") {
  Octets bytes;
  append(bytes, ping(1));
  append(bytes, frame_with_payload(2, 5000));
  append_chunk(bytes, 3, 5001, 7);
  append_chunk(bytes, Frames::kDropped, 5003, 8);
  append(bytes, test::call_frame({.id = 4}, std::string(100'000, 'x')));
  append(bytes, ping(5));
  for (const std::size_t step : {std::size_t{1} << 40, std::size_t{4096}, std::size_t{7}}) {
    CAPTURE(step);
    Reading reading;
    reading.reader.open();
    reading.bytes = bytes;
    reading.step = step;
    reading.round();
    CHECK(reading.frames.events == std::vector<std::string>{"frame 1", "frame 2 with 5000",
                                                            "chunk 3", "frame 4", "frame 5"});
  }
}

TEST_CASE("a round that is given back leaves the unread bytes to the next round") {
  Reading reading;
  reading.reader.open();
  append(reading.bytes, ping(1));
  append(reading.bytes, ping(2));
  reading.frames.at_frame = [&] {
    if (reading.frames.events.size() > 1) return;
    CHECK(reading.current->give_back());
    CHECK_FALSE(reading.current->give_back());
    CHECK(reading.current->is_over());
  };
  reading.round();
  CHECK(reading.frames.events == std::vector<std::string>{"frame 1"});
  append(reading.bytes, ping(3));
  reading.round();
  CHECK(reading.frames.events == std::vector<std::string>{"frame 1", "frame 2", "frame 3"});
}

TEST_CASE("a frame reader that is reset forgets half a frame, and a chunk that has just begun") {
  Reading reading;
  reading.reader.open();
  append(reading.bytes, ping(1));
  reading.bytes.resize(20);
  reading.round();
  reading.reader.reset();
  reading.reader.open();
  append_chunk(reading.bytes, 2, 5000, 7);
  reading.frames.at_chunk = [&] { reading.reader.reset(); };
  reading.round();
  reading.bytes.clear();
  append(reading.bytes, ping(3));
  reading.round();
  CHECK(reading.frames.events == std::vector<std::string>{"frame 3"});
}

TEST_CASE("a frame reader refuses what is too long before the hello") {
  Reading reading;
  append(reading.bytes, test::call_frame({.id = 1}, std::string(2000, 'x')));
  CHECK_THROWS_WITH(reading.round(), Catch::Contains("1024"));
  reading.reader.reset();
  reading.bytes.clear();
  for (int i = 0; i < 100; ++i)
    append(reading.bytes, ping(1));
  CHECK_THROWS_WITH(reading.round(), Catch::Contains("arrived before a hello"));
}

TEST_CASE("calls and replies that are too long are dropped, and what follows them is read") {
  const auto size = GENERATE(std::size_t{70'000}, std::size_t{2'000'000});
  Octets bytes;
  append(bytes, ping(1));
  const auto frame = test::call_frame({.id = 2}, std::string(size, 'x'));
  append(bytes, frame);
  append(bytes, ping(3));
  append(bytes, wire::error_frame(4, std::make_exception_ptr(Overloaded("no"))));
  append(bytes, frame);
  for (const std::size_t step : {std::size_t{1} << 40, std::size_t{4096}, std::size_t{3001}}) {
    CAPTURE(size, step);
    Reading reading{.reader = FrameReader({.before_hello_bytes = 1024, .frame_bytes = 64 * 1024})};
    reading.reader.open();
    reading.bytes = bytes;
    reading.step = step;
    test::reset_largest_allocation();
    reading.round();
    const std::string dropped = "dropped 2 of " + std::to_string(frame.size() * sizeof(Word));
    CHECK(reading.frames.events ==
          std::vector<std::string>{"frame 1", dropped, "frame 3", "frame 4", dropped});
  }
}

TEST_CASE("the sizes of the payloads that follow a dropped frame are known") {
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<std::string>(encoder, wire::kBodyPointer, std::string(900'000, 'x'));
  for (const std::size_t size : {std::size_t{7}, std::size_t{0}, std::size_t{30'000}})
    encoder.add_payload(Bytes::allocate(size));
  wire::finish_frame(encoder, {.kind = FrameKind::call, .id = 2});
  Octets bytes;
  append(bytes, encoder.words());
  append(bytes, ping(3));
  const bool no_memory = GENERATE(false, true);
  for (const std::size_t step : {std::size_t{1} << 40, std::size_t{200'000}, std::size_t{4097}}) {
    for (std::size_t n = 1; n < (no_memory ? 20 : 2); ++n) {
      CAPTURE(step, n);
      Reading reading{
          .reader = FrameReader({.before_hello_bytes = 1024,
                                 .frame_bytes = std::uint64_t{no_memory ? 1024U : 64U} * 1024})};
      reading.frames.events.reserve(5);
      reading.reader.open();
      reading.bytes = bytes;
      reading.step = step;
      if (no_memory) test::fail_allocation(n);
      bool thrown = false;
      try {
        reading.round();
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      const bool failed = no_memory && test::allocation_failed() && !thrown;
      if (no_memory && !failed) continue;  // not in the frame's memory
      REQUIRE(reading.frames.events.size() == 2);
      CHECK_THAT(reading.frames.events.front(),
                 Catch::StartsWith("dropped 2") && Catch::EndsWith("with 7 with 0 with 30000"));
      CHECK(reading.frames.events.back() == "frame 3");
    }
  }
}

TEST_CASE("a frame that is too long and has no caller is an error, as is one for any node") {
  Reading reading;
  reading.reader.open();
  append(reading.bytes, wire::definition_frame({.name = std::string(2'000'000, 'x')}));
  CHECK_THROWS_WITH(reading.round(), Catch::Contains("NodeOptions::limits.max_frame_bytes") &&
                                         Catch::Contains("neither a call nor a reply"));
  reading.reader.reset();
  reading.reader.open();
  reading.bytes.clear();
  append(reading.bytes, {(wire::kMostFrameBytes / sizeof(Word)) << 32});
  CHECK_THROWS_WITH(reading.round(), Catch::Contains("limit of 4294967296 of all nodes"));
}

TEST_CASE("a call without memory for its frame is dropped, and what follows it is read") {
  Octets bytes;
  append(bytes, test::call_frame({.id = 1}, std::string(900'000, 'x')));
  append(bytes, ping(2));
  int dropped = 0;
  for (std::size_t n = 1; n < 20; ++n) {
    CAPTURE(n);
    Reading reading;
    reading.frames.events.reserve(5);
    reading.reader.open();
    reading.bytes = bytes;
    reading.step = 200'000;
    test::fail_allocation(n);
    bool thrown = false;
    try {
      reading.round();
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    if (!test::allocation_failed()) {
      CHECK(reading.frames.events == std::vector<std::string>{"frame 1", "frame 2"});
    } else if (!thrown) {
      CHECK(reading.frames.events == std::vector<std::string>{"dropped 1: no memory", "frame 2"});
      ++dropped;
    }
  }
  CHECK(dropped >= 3);
}

TEST_CASE("the memory for a large frame grows with the bytes that come, and is not kept") {
  constexpr std::size_t kSize = 1'000'000;
  const std::vector<Word> frame = test::call_frame({.id = 1}, std::string(kSize, 'x'));
  const auto bytes = std::as_bytes(std::span(frame));
  Reading reading;
  reading.reader.open();
  const std::size_t before = test::allocated_bytes();
  for (const std::size_t sent : {std::size_t{8}, std::size_t{1000}, std::size_t{200'000}}) {
    CAPTURE(sent);
    reading.reader.reset();
    reading.reader.open();
    reading.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(sent));
    reading.step = 70'000;
    test::reset_largest_allocation();
    reading.round();
    CHECK(test::largest_allocation() <= std::max(GrowingBytes::kLeast, 2 * sent) + 128);
  }
  for (const std::size_t step : {std::size_t{100'000}, std::size_t{4096}, std::size_t{70'001}}) {
    CAPTURE(step);
    reading.reader.reset();
    reading.reader.open();
    reading.frames.events.clear();
    reading.bytes.assign(bytes.begin(), bytes.end());
    append(reading.bytes, ping(2));
    reading.step = step;
    reading.round();
    CHECK(reading.frames.events == std::vector<std::string>{"frame 1", "frame 2"});
  }
  reading.frames = {};
  Octets().swap(reading.bytes);
  CHECK(test::allocated_bytes() < before + ReadBuffer::kBytes + 64 * 1024);
}

TEST_CASE("before the hello a peer cannot have more kept than the limit, payloads included") {
  Reading reading;
  const std::vector<Word> frame = frame_with_payload(1, 5000);  // the limit is 1024 bytes
  append(reading.bytes, frame);
  reading.bytes.resize(200);
  CHECK_THROWS_WITH(reading.round(), Catch::Contains("arrived before a hello"));
}

}  // namespace frame_reader_test
}  // namespace batchrpc
