#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "node/output_fixture.hpp"

// What a queue keeps until it is acknowledged, and sends again over the next stream.
namespace batchrpc {
namespace output_rewind_test {

using test::append_call;
using test::filled;
using test::OutputFixture;
using test::ping;
using test::Sink;
using wire::FrameKind;

/// A queue whose stream breaks, and the next one.
struct Fixture : OutputFixture {
  Fixture() { queue.open(); }
  Sink next;

  /// The pieces that come by the next stream.
  std::vector<Sink::Piece> resume(std::uint64_t received) {
    queue.detach();
    queue.attach(&next);
    REQUIRE(queue.rewind(received));
    queue.open();
    CHECK(queue.flush() == OutputQueue::Flushed::all);
    return next.pieces();
  }
};

std::vector<std::uint64_t> ids(const std::vector<Sink::Piece>& pieces) {
  std::vector<std::uint64_t> all;
  for (const auto& piece : pieces)
    all.push_back(piece.header.id);
  return all;
}

TEST_CASE("what was written and not acknowledged is written again, from where the peer says") {
  Fixture f;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    append_call(f.queue, id, {});
    if (id != 2) f.drain(1 << 20);  // 2 and 3 leave together
  }
  SECTION("all") { CHECK(ids(f.resume(0)) == std::vector<std::uint64_t>{1, 2, 3, 4}); }
  SECTION("from the middle of a round") {
    CHECK(ids(f.resume(2)) == std::vector<std::uint64_t>{3, 4});
  }
  SECTION("nothing") { CHECK(f.resume(4).empty()); }
  SECTION("but not what is acknowledged") {
    CHECK(f.queue.acknowledge(1));
    CHECK(ids(f.resume(1)) == std::vector<std::uint64_t>{2, 3, 4});
  }
}

TEST_CASE("frames that do not count are passed over when the others are counted") {
  Fixture f;
  f.queue.append(ping(90), 0, false, {});
  append_call(f.queue, 1, {filled(10, 1)});
  f.queue.append(ping(91), 0, false, {});
  append_call(f.queue, 2, {filled(11, 2)});
  f.drain(1 << 20);
  CHECK(ids(f.resume(1)) == std::vector<std::uint64_t>{91, 2});
}

TEST_CASE("a call that was taken back does not count") {
  Fixture f;
  append_call(f.queue, 1, {});
  const auto place = append_call(f.queue, 2, {});
  append_call(f.queue, 3, {});
  CHECK(f.retract(place));
  f.drain(1 << 20);
  CHECK_FALSE(f.queue.acknowledge(3));
  CHECK(f.queue.acknowledge(2));
}

TEST_CASE("a chunk is written again as a whole, by who owns it until it is acknowledged") {
  Fixture f;
  Bytes bytes = filled(300'000, 7);
  const std::weak_ptr<const void> watch = bytes.owner();
  append_call(f.queue, 1, {std::move(bytes)});
  f.sink.room = 1000;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  const auto pieces = f.resume(1);  // the call, and not its first chunk
  std::size_t there = 0;
  for (const auto& piece : pieces) {
    CHECK(piece.header.kind == FrameKind::chunk);
    there += piece.header.value;
  }
  CHECK(there == 300'000);
  CHECK_FALSE(watch.expired());
  CHECK(f.queue.acknowledge(1 + pieces.size()));
  CHECK(watch.expired());
  CHECK(f.queue.kept_bytes() == 0);
}

TEST_CASE("what is acknowledged while it is being written is let go afterwards") {
  Fixture f;
  append_call(f.queue, 1, {});
  f.sink.room = 10;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  CHECK(f.queue.acknowledge(1));
  f.unblock();
  CHECK(f.queue.kept_bytes() == 0);
}

TEST_CASE("nobody acknowledges what was not sent, or less than before") {
  Fixture f;
  append_call(f.queue, 1, {});
  append_call(f.queue, 2, {});
  CHECK_FALSE(f.queue.acknowledge(1));
  f.drain(1 << 20);
  CHECK_FALSE(f.queue.acknowledge(3));
  CHECK(f.queue.acknowledge(2));
  f.queue.detach();
  CHECK_FALSE(f.queue.rewind(1));
  CHECK_FALSE(f.queue.rewind(3));
  CHECK(f.queue.rewind(2));
}

TEST_CASE("the handshake goes before what waits, and is never repeated") {
  Fixture f;
  f.queue.append_first(ping(50));
  append_call(f.queue, 1, {});
  f.drain(1 << 20);
  CHECK(ids(f.sink.pieces()) == std::vector<std::uint64_t>{50, 1});
  f.queue.detach();
  append_call(f.queue, 2, {});
  f.queue.attach(&f.next);
  f.queue.append_first(ping(51));
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  CHECK(ids(f.next.pieces()) == std::vector<std::uint64_t>{51});
  CHECK(f.queue.rewind(0));
  f.queue.open();
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  CHECK(ids(f.next.pieces()) == std::vector<std::uint64_t>{51, 1, 2});
}

TEST_CASE("the last frame that leaves says how many were received") {
  Fixture f;
  append_call(f.queue, 1, {});
  f.queue.set_received(9);
  append_call(f.queue, 2, {});
  f.drain(1 << 20);
  const auto pieces = f.sink.pieces();
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].header.acknowledged == 0);
  CHECK(pieces[1].header.acknowledged == 9);
}

TEST_CASE("whatever is broken off, each frame arrives once, in order") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    auto f = std::make_unique<OutputFixture>();
    f->queue.open();
    std::vector<std::uint64_t> received;  // reliable frames, by their numbers below
    std::uint64_t next = 1;
    Sink* sink = &f->sink;
    std::vector<std::unique_ptr<Sink>> sinks;
    for (int step = 0; step < 60; ++step) {
      for (std::uint64_t i = random() % 4; i > 0; --i)
        append_call(f->queue, next++, {filled(random() % 3 == 0 ? 3000 : 5, 1)});
      sink->room = random() % 20'000;
      (void)(f->queue.is_blocked() ? f->queue.flush_blocked() : f->queue.flush());
      if (random() % 4 != 0) continue;
      // The peer has got whole frames only, up to where the stream broke.
      sink->bytes.resize(random() % (sink->bytes.size() + 1));
      std::size_t at = 0;
      std::uint64_t words = 0;
      while (at + 8 <= sink->bytes.size()) {
        Word first = 0;
        std::memcpy(&first, sink->bytes.data() + at, sizeof first);
        words = *wire::frame_words(first);
        std::vector<Word> frame(words);
        if (at + words * 8 > sink->bytes.size()) break;
        std::memcpy(frame.data(), sink->bytes.data() + at, words * 8);
        std::uint64_t behind = 0;
        for (const std::uint64_t size : wire::parse_frame(frame).payload_sizes)
          behind += wire::padded(size);
        if (at + words * 8 + behind > sink->bytes.size()) break;
        at += words * 8 + behind;
        received.push_back(wire::parse_frame(frame).header.id);
      }
      f->queue.detach();
      sink = sinks.emplace_back(std::make_unique<Sink>()).get();
      f->queue.attach(sink);
      INFO("seed " << seed);
      REQUIRE(f->queue.rewind(received.size()));
      f->queue.open();
    }
    sink->room = std::size_t{1} << 40;
    (void)(f->queue.is_blocked() ? f->queue.flush_blocked() : f->queue.flush());
    for (const auto& piece : sink->pieces())
      received.push_back(piece.header.id);
    std::vector<std::uint64_t> all(next - 1);
    std::iota(all.begin(), all.end(), std::uint64_t{1});
    INFO("seed " << seed);
    REQUIRE(received == all);
    f->queue.close();
  }
}

}  // namespace output_rewind_test
}  // namespace batchrpc
