#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "session/output_queue.hpp"
#include "wire/frame.hpp"

namespace batchrpc::test {

/// A stream that takes as many bytes as it is told to, and keeps them.
class Sink final : public Stream {
 public:
  IoResult try_read(std::span<const std::span<std::byte>> /*buffers*/) noexcept override {
    return {};
  }
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override {
    ++writes;
    IoResult result;
    if (broken) {
      result.error = std::make_error_code(std::errc::broken_pipe);
      return result;
    }
    for (const auto buffer : buffers) {
      const std::size_t count = std::min(buffer.size(), room - result.bytes);
      bytes.insert(bytes.end(), buffer.begin(),
                   buffer.begin() + static_cast<std::ptrdiff_t>(count));
      result.bytes += count;
    }
    room -= result.bytes;
    return result;
  }
  void wait_readable(Task /*handler*/) override {}
  void wait_writable(Task /*handler*/) override {}
  void shutdown() noexcept override {}
  [[nodiscard]] std::string description() const override { return "a sink"; }
  [[nodiscard]] Address local_address() const override { return Address::parse("inproc://sink"); }

  /// What was written, as frames, each followed by the bytes that belong to it.
  struct Piece {
    wire::FrameHeader header;
    std::vector<std::byte> behind;
  };
  [[nodiscard]] std::vector<Piece> pieces() const {
    std::vector<Piece> all;
    std::size_t at = 0;
    while (at < bytes.size()) {
      std::vector<Word> words(1);
      std::memcpy(words.data(), bytes.data() + at, sizeof(Word));
      words.resize(*wire::frame_words(words[0]));
      std::memcpy(words.data(), bytes.data() + at, words.size() * sizeof(Word));
      at += words.size() * sizeof(Word);
      const auto frame = wire::parse_frame(words);
      std::uint64_t size = 0;
      if (frame.header.kind == wire::FrameKind::chunk) size = wire::padded(frame.header.value);
      if (wire::has_inline_payloads(words)) {
        for (const std::uint64_t payload : frame.payload_sizes)
          size += wire::padded(payload);
      }
      REQUIRE(at + size <= bytes.size());
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      all.push_back({frame.header, {begin, begin + static_cast<std::ptrdiff_t>(size)}});
      at += size;
    }
    return all;
  }

  std::vector<std::byte> bytes;
  std::size_t room = std::size_t{1} << 40;
  int writes = 0;
  bool broken = false;
};

inline std::vector<Word> ping(std::uint64_t id) {
  return wire::plain_frame({.kind = wire::FrameKind::ping, .id = id});
}

inline Bytes filled(std::size_t size, int value) {
  Bytes bytes = Bytes::allocate(size);
  if (size > 0) std::memset(bytes.mutable_data(), value, size);
  return bytes;
}

/// A call with payloads, appended to the queue.
inline OutputQueue::Place append_call(OutputQueue& queue, std::uint64_t id,
                                      std::vector<Bytes> payloads,
                                      std::size_t words_of_arguments = 0) {
  Encoder encoder(wire::kEnvelopeWords);
  encoder.words().resize(encoder.words().size() + words_of_arguments);
  encoder.payloads() = std::move(payloads);
  wire::finish_frame(encoder, {.kind = wire::FrameKind::call, .id = id});
  return queue.append(encoder.words(), id, false, std::move(encoder.payloads()));
}

/// A queue and where it writes to.
struct OutputFixture {
  Sink sink;
  OutputQueue queue;

  OutputFixture() { queue.attach(&sink); }
  /// Writes until the sink has taken all, `room` bytes at a time.
  void drain(std::size_t room) {
    sink.room = room;
    auto flushed = queue.flush();
    while (flushed == OutputQueue::Flushed::blocked) {
      sink.room = room;
      flushed = queue.flush_blocked();
    }
    CHECK(flushed == OutputQueue::Flushed::all);
  }
  /// The sink, which was full, takes all.
  void unblock() {
    sink.room = std::size_t{1} << 40;
    CHECK(queue.flush_blocked() == OutputQueue::Flushed::all);
  }
  /// The peer asks for the payloads of a call.
  void ask_for(std::uint64_t call) { queue.resume(call); }
  /// The peer acknowledges all that has left.
  void acknowledge_all() {
    acknowledged += queue.frames().unacknowledged();
    CHECK(queue.acknowledge(acknowledged));
  }
  bool retract(OutputQueue::Place place) { return queue.retract(place, payloads); }

  std::vector<Bytes> payloads;  // taken back
  std::uint64_t acknowledged = 0;
};

}  // namespace batchrpc::test
