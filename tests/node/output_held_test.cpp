#include <catch2/catch.hpp>
#include <cstddef>
#include <mutex>
#include <vector>

#include "node/output_fixture.hpp"

// What an output queue holds of calls and replies, for which there is credit (promise 5).

namespace batchrpc {
namespace output_held_test {

using test::append_call;
using test::filled;
using test::ping;

struct Fixture : test::OutputFixture {
  Fixture() { queue.open(); }
  [[nodiscard]] std::uint64_t calls() { return queue.held().calls(); }
  [[nodiscard]] std::uint64_t paused() { return queue.held().paused(); }
  void reply(std::uint64_t id, std::size_t bytes) {
    Encoder encoder(wire::kEnvelopeWords);
    encoder.payloads() = {filled(bytes, 1)};
    wire::finish_frame(encoder, {.kind = wire::FrameKind::result, .id = id});
    queue.append(encoder.words(), id, true, std::move(encoder.payloads()));
  }
};

TEST_CASE("a call is held until it is acknowledged, its payload as a whole") {
  Fixture f;
  append_call(f.queue, 1, {filled(600'000, 1)});
  const auto all = f.calls();
  CHECK(all > 600'000);
  CHECK(all < 601'000);
  f.drain(std::size_t{1} << 40);
  CHECK(f.calls() == all);
  CHECK(f.queue.acknowledge(1));  // the frame leaves with the first of three chunks
  CHECK(f.calls() == all);
  CHECK(f.queue.acknowledge(3));
  CHECK(f.calls() == 600'000);
  CHECK(f.queue.acknowledge(4));
  CHECK(f.calls() == 0);
  CHECK(f.queue.held().replies() == 0);
}

TEST_CASE("replies are held apart from calls, and other frames are not counted") {
  Fixture f;
  f.queue.append(ping(1), 0, false, {});
  CHECK(f.calls() == 0);
  f.reply(1, 100'000);
  CHECK(f.calls() == 0);
  CHECK(f.queue.held().replies() > 100'000);
  f.drain(std::size_t{1} << 40);
  CHECK(f.queue.held().replies() > 100'000);
  CHECK(f.queue.acknowledge(2));
  CHECK(f.queue.held().replies() == 0);
}

TEST_CASE(
    "payloads that wait are held apart, and those that are cut off until their chunks are gone") {
  Fixture f;
  append_call(f.queue, 1, {filled(600'000, 1)});
  const auto all = f.calls();
  f.sink.room = 300'000;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  { f.queue.pause(1); }
  CHECK(f.calls() < 1000);
  CHECK(f.paused() == 600'000);
  { CHECK(f.queue.cut_off(1, f.payloads)); }
  CHECK(f.paused() == 0);
  CHECK(f.calls() == all);
  append_call(f.queue, 2, {});
  f.unblock();
  CHECK(f.queue.acknowledge(3));  // the frame and two chunks
  CHECK(f.calls() > 600'000);
  CHECK(f.queue.acknowledge(4));
  CHECK(f.calls() == 0);
}

TEST_CASE("a call that is taken back before it leaves gives the bytes of its payloads back") {
  Fixture f;
  const auto place = append_call(f.queue, 1, {filled(600'000, 1)});
  CHECK(f.retract(place));
  CHECK(f.calls() < 1000);
  f.drain(std::size_t{1} << 40);
  CHECK(f.calls() == 0);
  append_call(f.queue, 2, {filled(600'000, 1)});
  f.queue.close();
  CHECK(f.calls() == 0);
}

TEST_CASE("frames that are not sent again are not kept behind those that are") {
  Fixture f;
  append_call(f.queue, 1, {});
  f.drain(std::size_t{1} << 40);
  const std::size_t kept = f.queue.kept_bytes();
  CHECK(kept > 0);
  for (int i = 0; i < 10; ++i) {
    f.queue.append(ping(1), 0, false, {});
    f.drain(std::size_t{1} << 40);
  }
  CHECK(f.queue.kept_bytes() == kept);
  append_call(f.queue, 2, {});
  f.drain(std::size_t{1} << 40);
  CHECK(f.queue.kept_bytes() == 2 * kept);
  f.queue.detach();
  CHECK(f.queue.rewind(1));
  CHECK(f.queue.queued_bytes() == kept);
  f.queue.attach(&f.sink);
  f.queue.open();
  f.drain(std::size_t{1} << 40);
  CHECK(f.queue.acknowledge(2));
  CHECK(f.queue.kept_bytes() == 0);
}

TEST_CASE("an acknowledgement is queued only where nothing is that tells the same") {
  Fixture f;
  f.queue.append_acknowledgement(ping(1));
  const std::size_t bytes = f.queue.queued_bytes();
  CHECK(bytes > 0);
  f.queue.append_acknowledgement(ping(2));
  CHECK(f.queue.queued_bytes() == bytes);
}

}  // namespace output_held_test
}  // namespace batchrpc
