#include <catch2/catch.hpp>
#include <map>

#include "node/output_fixture.hpp"

// Payloads that wait in the output queue, and that never leave.

namespace batchrpc {
namespace output_pausing_test {

using test::append_call;
using test::filled;
using test::ping;

struct Fixture : test::OutputFixture {
  Fixture() { queue.open(); }
  void pause(std::uint64_t call) { queue.pause(call); }
  bool cut_off(std::uint64_t call) { return queue.cut_off(call, payloads); }
  /// How many bytes of payloads have left, by call.
  [[nodiscard]] std::map<std::uint64_t, std::uint64_t> sent() const {
    std::map<std::uint64_t, std::uint64_t> bytes;
    for (const auto& piece : sink.pieces()) {
      if (piece.header.kind == wire::FrameKind::chunk) bytes[piece.header.id] += piece.header.value;
    }
    return bytes;
  }
  void write_all() {
    sink.room = std::size_t{1} << 40;
    CHECK(queue.flush() == OutputQueue::Flushed::all);
  }
};

TEST_CASE("payloads that wait let all others pass, and go on where they were") {
  Fixture f;
  append_call(f.queue, 1, {filled(1'000'000, 1)});
  append_call(f.queue, 2, {filled(1'000'000, 2)});
  f.sink.room = 300'000;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  f.pause(1);
  CHECK(f.queue.paused_bytes() == 1'000'000 - 256 * 1024);
  f.unblock();
  CHECK(f.sent() == std::map<std::uint64_t, std::uint64_t>{{1, 256 * 1024}, {2, 1'000'000}});
  CHECK(f.queue.queued_bytes() == 0);
  CHECK(f.queue.paused_bytes() == 1'000'000 - 256 * 1024);
  f.queue.append(ping(7), 0, false, {});
  append_call(f.queue, 3, {filled(100'000, 3)});
  f.write_all();
  CHECK(f.sent().at(3) == 100'000);
  f.ask_for(1);
  CHECK(f.queue.paused_bytes() == 0);
  f.write_all();
  CHECK(f.sent().at(1) == 1'000'000);
}

TEST_CASE("a peer gets 1 MiB of a call's payloads before it has asked for them") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  Fixture f;
  append_call(f.queue, 1, {filled(400'000, 1), filled(3 * kMiB, 1)});
  append_call(f.queue, 2, {filled(kMiB, 2)});
  const auto held = [&f] { return std::pair(f.queue.held().calls(), f.queue.held().paused()); };
  f.write_all();
  f.acknowledge_all();
  const std::uint64_t before = f.sent().at(1);
  CHECK(before == kMiB);
  CHECK(f.sent().at(2) == kMiB);
  CHECK(f.queue.queued_bytes() == 0);  // so that pings are answered meanwhile
  CHECK(f.queue.ungranted_bytes() == 400'000 + 3 * kMiB - before);
  CHECK(f.queue.paused_bytes() == 0);
  CHECK(held().first == 400'000 + 3 * kMiB);  // unlike those that the peer has wait
  CHECK(held().second == 0);
  SECTION("they go on when it asks") { f.ask_for(1); }
  SECTION("they may have to wait first, or longer") {
    f.pause(1);
    CHECK(held().second == 400'000 + 3 * kMiB);
    f.write_all();
    CHECK(f.sent().at(1) == before);
    f.ask_for(1);
    f.pause(1);
    f.write_all();
    CHECK(f.sent().at(1) == before);
    f.ask_for(1);
  }
  f.write_all();
  f.acknowledge_all();
  CHECK(f.sent().at(1) == 400'000 + 3 * kMiB);
  CHECK(f.queue.ungranted_bytes() + f.queue.paused_bytes() == 0);
  CHECK(held() == std::pair(std::uint64_t{0}, std::uint64_t{0}));
}

TEST_CASE("who is asked early sends all at once, and replies need not be asked for") {
  Fixture f;
  append_call(f.queue, 1, {filled(3'000'000, 1)});
  f.ask_for(1);
  Encoder encoder(wire::kEnvelopeWords);
  encoder.payloads().push_back(filled(2'000'000, 4));
  wire::finish_frame(encoder, {.kind = wire::FrameKind::result, .id = 4});
  f.queue.append(encoder.words(), 4, true, std::move(encoder.payloads()));
  f.write_all();
  CHECK(f.sent() == std::map<std::uint64_t, std::uint64_t>{{1, 3'000'000}, {4, 2'000'000}});
}

TEST_CASE("what has yet to be asked for is cut off, or let go at the end") {
  for (const bool closed : {true, false}) {
    Fixture f;
    auto owner = std::make_shared<std::vector<std::byte>>(3'000'000);
    const std::weak_ptr<void> watch = owner;
    append_call(f.queue, 1, {Bytes(owner, std::span<const std::byte>(*owner))});
    owner.reset();
    f.write_all();
    f.acknowledge_all();
    CHECK_FALSE(watch.expired());
    if (closed) {
      f.queue.close();
    } else {
      CHECK(f.cut_off(1));
      f.payloads.clear();
      CHECK_FALSE(f.cut_off(1));
    }
    CHECK(watch.expired());
    CHECK(f.queue.ungranted_bytes() == 0);
  }
}

TEST_CASE("to have payloads wait or go on that are not there does nothing") {
  Fixture f;
  append_call(f.queue, 1, {filled(100'000, 1)});
  f.pause(2);
  f.ask_for(1);
  f.ask_for(3);
  f.write_all();
  f.pause(1);
  CHECK(f.queue.paused_bytes() == 0);
  // Those of a reply of the same number are none of a call.
  Encoder encoder(wire::kEnvelopeWords);
  encoder.payloads().push_back(filled(100'000, 4));
  wire::finish_frame(encoder, {.kind = wire::FrameKind::result, .id = 4});
  f.queue.append(encoder.words(), 4, true, std::move(encoder.payloads()));
  f.pause(4);
  CHECK_FALSE(f.cut_off(4));
  f.write_all();
  CHECK(f.sent() == std::map<std::uint64_t, std::uint64_t>{{1, 100'000}, {4, 100'000}});
}

TEST_CASE("what is cut off never leaves, but for the chunk that is being written") {
  for (const bool paused : {true, false}) {
    Fixture f;
    append_call(f.queue, 1, {filled(1'000'000, 1), filled(20'000, 1)});
    f.sink.room = 100'000;
    CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
    if (paused) f.pause(1);
    CHECK(f.cut_off(1));
    CHECK(f.payloads.size() == 2);
    CHECK_FALSE(f.cut_off(1));
    f.queue.append(ping(7), 0, false, {});
    f.unblock();
    CHECK(f.sent() == std::map<std::uint64_t, std::uint64_t>{{1, 256 * 1024}});
    CHECK(f.sink.pieces().back().header.id == 7);
    CHECK(f.queue.queued_bytes() + f.queue.paused_bytes() == 0);
  }
}

TEST_CASE("nothing is cut off of what has left as a whole") {
  Fixture f;
  append_call(f.queue, 1, {filled(600'000, 1)});
  append_call(f.queue, 2, {filled(0, 0)}, 5000);  // large, without a byte beside it
  append_call(f.queue, 3, {filled(100'000, 1)});
  f.sink.room = 100'000;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  CHECK_FALSE(f.cut_off(2));
  f.unblock();
  CHECK_FALSE(f.cut_off(3));
  CHECK(f.sent() == std::map<std::uint64_t, std::uint64_t>{{1, 600'000}, {3, 100'000}});
}

TEST_CASE("a call that is taken back while its payloads wait gives them back") {
  Fixture f;
  f.sink.room = 0;
  append_call(f.queue, 1, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  const auto place = append_call(f.queue, 2, {filled(100'000, 1)});
  f.pause(2);
  CHECK(f.retract(place));
  CHECK(f.payloads.size() == 1);
  CHECK(f.queue.paused_bytes() == 0);
  f.unblock();
  CHECK(f.sent().empty());
}

TEST_CASE("a queue that is closed lets go of what waits") {
  Fixture f;
  auto owner = std::make_shared<std::vector<std::byte>>(600'000);
  const std::weak_ptr<void> watch = owner;
  append_call(f.queue, 1, {Bytes(owner, std::span<const std::byte>(*owner))});
  owner.reset();
  f.pause(1);
  f.write_all();
  CHECK_FALSE(watch.expired());
  f.queue.close();
  CHECK(watch.expired());
  CHECK(f.queue.paused_bytes() == 0);
  f.ask_for(1);
}

}  // namespace output_pausing_test
}  // namespace batchrpc
