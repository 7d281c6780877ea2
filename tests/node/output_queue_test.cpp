#include "session/output_queue.hpp"

#include <malloc.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <thread>

#include "node/output_fixture.hpp"

namespace batchrpc {
namespace output_queue_test {

using test::append_call;
using test::filled;
using test::ping;
using test::Sink;
using Fixture = test::OutputFixture;

TEST_CASE("frames wait for the handshake, which goes before them") {
  Fixture f;
  f.queue.append(ping(1), 0, false, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  CHECK(f.sink.bytes.empty());
  f.queue.append_first(wire::hello_frame({.name = "me"}));
  f.queue.flush();
  CHECK(f.sink.pieces().size() == 1);
  f.queue.open();
  f.queue.flush();
  const auto pieces = f.sink.pieces();
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].header.kind == wire::FrameKind::hello);
  CHECK(pieces[1].header.id == 1);
  CHECK(f.queue.queued_bytes() == 0);
}

TEST_CASE("frames that gather leave in one write") {
  Fixture f;
  f.queue.open();
  for (std::uint64_t i = 0; i < 100; ++i)
    f.queue.append(ping(i), 0, false, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  CHECK(f.sink.writes == 1);
  CHECK(f.sink.pieces().size() == 100);
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  CHECK(f.sink.writes == 1);
}

TEST_CASE("a call is taken back until a write has begun, and leaves as a frame without effect") {
  Fixture f;
  const auto first = append_call(f.queue, 1, {});
  CHECK(f.retract(first));
  const auto second = append_call(f.queue, 2, {});
  f.queue.open();
  f.queue.flush();
  CHECK_FALSE(f.retract(second));
  f.sink.room = 0;
  const auto third = append_call(f.queue, 3, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  CHECK_FALSE(f.retract(third));  // a write has begun
  const auto fourth = append_call(f.queue, 4, {});
  append_call(f.queue, 5, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);  // whoever was blocked takes it along
  CHECK(f.retract(fourth));
  f.unblock();
  std::vector<std::uint64_t> calls;
  for (const auto& piece : f.sink.pieces()) {
    if (piece.header.kind == wire::FrameKind::call) calls.push_back(piece.header.id);
  }
  CHECK(calls == std::vector<std::uint64_t>{2, 3, 5});
}

TEST_CASE("the payloads of a call that is taken back are given back, and never sent") {
  Fixture f;
  f.queue.open();
  f.sink.room = 0;
  append_call(f.queue, 1, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  const auto small = append_call(f.queue, 2, {Bytes::allocate(10), Bytes::allocate(3)});
  const auto large = append_call(f.queue, 3, {Bytes::allocate(100'000), Bytes::allocate(1)});
  append_call(f.queue, 4, {Bytes::allocate(100'000)});
  append_call(f.queue, 5, {Bytes::allocate(9)});
  CHECK(f.retract(small));
  CHECK(f.payloads.empty());  // they were copied
  CHECK(f.retract(large));
  CHECK(f.payloads.size() == 2);
  f.unblock();
  std::size_t chunked = 0;
  for (const auto& piece : f.sink.pieces()) {
    const bool is_void = piece.header.kind == wire::FrameKind::pong;
    CHECK(is_void == (piece.header.id == 2 || piece.header.id == 3));
    if (piece.header.kind == wire::FrameKind::chunk) chunked += piece.header.value;
  }
  CHECK(chunked == 100'000);
}

TEST_CASE("a stream that takes one byte at a time gets every byte, once and in order") {
  std::mt19937_64 random(5);
  Fixture whole;
  Fixture slow;
  for (Fixture* f : {&whole, &slow}) {
    random.seed(5);
    f->queue.open();
    for (std::uint64_t i = 1; i < 20; ++i) {
      f->queue.append(ping(i), 0, false, {});
      append_call(f->queue, 100 + i, {filled(random() % 100, static_cast<int>(i))});
    }
    append_call(f->queue, 1000, {filled(20'000, 1), filled(3, 2)});
  }
  whole.drain(std::size_t{1} << 40);
  slow.drain(1);
  CHECK(slow.sink.bytes.size() > 20'000);
  CHECK(slow.sink.bytes == whole.sink.bytes);
}

TEST_CASE("large payloads go in chunks, in turn, and a small frame overtakes them") {
  Fixture f;
  f.queue.open();
  constexpr std::size_t kSize = 12 * 1024 * 1024 + 5;
  append_call(f.queue, 1, {filled(kSize, 1)});
  append_call(f.queue, 2, {filled(kSize, 2), filled(17'000, 3)});
  f.ask_for(1);
  f.ask_for(2);
  f.sink.room = 300'000;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  f.queue.append(ping(77), 0, false, {});
  f.sink.room = std::size_t{1} << 40;
  CHECK(f.queue.flush_blocked() == OutputQueue::Flushed::all);

  const auto pieces = f.sink.pieces();
  CHECK(pieces[0].header.id == 1);
  CHECK(pieces[1].header.id == 2);
  std::size_t ping_at = 0;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> received;
  std::size_t turns = 0;
  std::uint64_t last = 0;
  for (std::size_t i = 2; i < pieces.size(); ++i) {
    const auto& [header, behind] = pieces[i];
    if (header.kind == wire::FrameKind::ping) {
      ping_at = i;
      continue;
    }
    REQUIRE(header.kind == wire::FrameKind::chunk);
    CHECK(header.value <= 1024 * 1024);
    received[{header.id, header.number}] += header.value;
    const int value = header.id == 1 ? 1 : header.number == 0 ? 2 : 3;
    CHECK(static_cast<int>(behind[0]) == value);
    CHECK(static_cast<int>(behind[header.value - 1]) == value);
    if (header.id != last) ++turns;
    last = header.id;
  }
  CHECK(received.at({1, 0}) == kSize);
  CHECK(received.at({2, 0}) == kSize);
  CHECK(received.at({2, 1}) == 17'000);
  CHECK(turns > 10);
  CHECK(ping_at > 0);
  CHECK(ping_at < 8);
}

TEST_CASE("chunks become as large as what the stream takes without a wait, 16 KiB to 1 MiB") {
  Fixture f;
  f.queue.open();
  constexpr std::size_t kKiB = 1024;
  // Sizes of the chunks of a payload, of which the stream takes so much at a time.
  const auto chunks = [&f](std::size_t size, std::size_t room) {
    const std::size_t before = f.sink.pieces().size();
    append_call(f.queue, 1, {filled(size, 1)});
    f.ask_for(1);
    f.drain(room);
    std::vector<std::uint64_t> sizes;
    const auto pieces = f.sink.pieces();
    for (std::size_t i = before; i < pieces.size(); ++i) {
      if (pieces[i].header.kind == wire::FrameKind::chunk) sizes.push_back(pieces[i].header.value);
    }
    return sizes;
  };
  auto sizes = chunks(4096 * kKiB, 100 * kKiB);
  CHECK(sizes.front() == 256 * kKiB);
  for (std::size_t i = 4; i + 1 < sizes.size(); ++i)
    CHECK((sizes[i] >= 64 * kKiB && sizes[i] <= 112 * kKiB));
  sizes = chunks(4096 * kKiB, 1000);
  CHECK(*std::min_element(sizes.begin() + 4, sizes.end() - 1) == 16 * kKiB);
  CHECK(sizes[sizes.size() - 2] == 16 * kKiB);
  sizes = chunks(8192 * kKiB, std::size_t{1} << 40);
  CHECK(sizes.front() == 16 * kKiB);
  CHECK(*std::max_element(sizes.begin(), sizes.end()) == 1024 * kKiB);
  sizes = chunks(1024 * kKiB, std::size_t{1} << 40);
  CHECK(sizes == std::vector<std::uint64_t>{1024 * kKiB});
}

TEST_CASE("a payload that was sent at once is one chunk the next time, whatever its size") {
  const auto size = static_cast<std::size_t>(GENERATE(300'000, 1'000'000, 1'048'575));
  Fixture f;
  f.queue.open();
  f.sink.room = std::size_t{1} << 40;
  for (int i = 0; i < 3; ++i) {
    append_call(f.queue, 1, {filled(size, 1)});
    CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  }
  const auto last = f.sink.pieces().back();
  CHECK(last.header.kind == wire::FrameKind::chunk);
  CHECK(last.header.value == size);
}

TEST_CASE("payloads without bytes beside large ones send no chunks of their own") {
  Fixture f;
  f.queue.open();
  append_call(f.queue, 1, {filled(0, 0), filled(20'000, 1), filled(0, 0)});
  f.drain(1000);
  const auto pieces = f.sink.pieces();
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[1].header.number == 1);
  CHECK(pieces[1].header.value == 20'000);
}

TEST_CASE("a large frame of which all payloads are empty stops no other's payloads") {
  Fixture f;
  f.queue.open();
  append_call(f.queue, 1, {filled(600'000, 1)});
  append_call(f.queue, 2, {filled(0, 0)}, 5000);
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  std::size_t chunked = 0;
  for (const auto& piece : f.sink.pieces()) {
    if (piece.header.kind == wire::FrameKind::chunk) chunked += piece.header.value;
  }
  CHECK(chunked == 600'000);
  CHECK(f.queue.queued_bytes() == 0);
}

TEST_CASE("a payload's memory is let go when the peer has acknowledged it") {
  Fixture f;
  f.queue.open();
  auto owner = std::make_shared<std::vector<std::byte>>(300'000);
  const std::weak_ptr<void> weak = owner;
  append_call(f.queue, 1, {Bytes(owner, std::span<const std::byte>(*owner))});
  owner.reset();
  f.sink.room = 290'000;
  CHECK(f.queue.flush() == OutputQueue::Flushed::blocked);
  CHECK_FALSE(weak.expired());
  f.sink.room = 100'000;
  CHECK(f.queue.flush_blocked() == OutputQueue::Flushed::all);
  CHECK_FALSE(weak.expired());
  f.acknowledge_all();
  CHECK(weak.expired());
}

TEST_CASE("a closed queue sends nothing, keeps nothing and forgets what comes") {
  Fixture f;
  f.queue.open();
  auto owner = std::make_shared<std::vector<std::byte>>(300'000);
  const std::weak_ptr<void> weak = owner;
  append_call(f.queue, 1, {Bytes(owner, std::span<const std::byte>(*owner))});
  owner.reset();
  f.queue.close();
  CHECK(weak.expired());
  f.queue.append(ping(1), 0, false, {});
  f.queue.append_first(ping(2));
  CHECK(f.queue.flush() == OutputQueue::Flushed::all);
  CHECK(f.sink.bytes.empty());
  CHECK(f.queue.queued_bytes() == 0);
}

TEST_CASE("an error of the stream is reported and kept") {
  Fixture f;
  f.queue.open();
  f.sink.broken = true;
  f.queue.append(ping(1), 0, false, {});
  CHECK(f.queue.flush() == OutputQueue::Flushed::failed);
  CHECK(f.queue.error() == std::errc::broken_pipe);
  f.queue.close();
}

TEST_CASE("what a burst has left behind is given back") {
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  Fixture f;
  f.queue.open();
  const auto before = allocated();
  for (std::uint64_t i = 0; i < 10'000; ++i)
    f.queue.append(ping(i), 0, false, {});
  CHECK(f.queue.queued_bytes() >= 10'000 * 80);
  f.queue.flush();
  CHECK(f.queue.queued_bytes() == 0);
  for (int burst = 0; burst < 2; ++burst) {  // one for each of two buffers
    for (std::uint64_t i = 0; i < 500; ++i)
      f.queue.append(ping(i), 0, false, {});
    f.queue.flush();
  }
  f.sink.bytes = std::vector<std::byte>();
  f.queue.trim();
  CHECK(allocated() <= before + (std::size_t{16} << 10));
  f.queue.append(ping(1), 0, false, {});
  f.queue.flush();
  CHECK(f.sink.pieces().size() == 1);
}

TEST_CASE("many threads append and flush, and every frame is written once and whole", "[threads]") {
  Fixture f;
  f.queue.open();
  constexpr int kThreads = 4;
  constexpr std::uint64_t kFrames = 2000;
  std::atomic<int> held_up{0};  // checks are not for several threads at once
  {
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&f, &held_up, thread] {
        for (std::uint64_t i = 0; i < kFrames; ++i) {
          f.queue.append(ping(thread << 32 | i), 0, false, {});
          if (i % 500 == 0) append_call(f.queue, thread << 32 | i, {filled(20'000, 1)});
          if (f.queue.flush() != OutputQueue::Flushed::all) ++held_up;
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }
  CHECK(held_up == 0);
  f.queue.flush();
  std::map<std::uint64_t, std::uint64_t> next;
  std::size_t pings = 0;
  for (const auto& [header, behind] : f.sink.pieces()) {
    if (header.kind != wire::FrameKind::ping) continue;
    CHECK((header.id & 0xffffffff) == next[header.id >> 32]++);  // each thread's in order
    ++pings;
  }
  CHECK(pings == kThreads * kFrames);
}

TEST_CASE("memory that was acknowledged, or never will be sent, is given back without a lock") {
  constexpr std::size_t kSize = 1 << 20;
  for (const bool sent : {true, false}) {
    Sink sink;
    OutputQueue queue;
    queue.attach(&sink);
    queue.open();
    const std::vector<std::byte> memory(kSize);
    int given_back = 0;
    const auto owner = [&](int* count) {
      return std::shared_ptr<const void>(memory.data(), [&queue, count](const void*) {
        (void)queue.queued_bytes();  // hangs if the queue is locked
        ++*count;
      });
    };
    for (int i = 0; i < 2; ++i) {
      Encoder encoder(wire::kEnvelopeWords);
      encoder.add_payload(Bytes(owner(&given_back), memory));
      wire::finish_frame(encoder, {.kind = wire::FrameKind::call});
      queue.append(encoder.words(), 1, false, std::move(encoder.payloads()));
    }
    sink.room = sent ? 4 * kSize : kSize / 2;
    (void)queue.flush();
    if (sent) CHECK(queue.acknowledge(queue.frames().unacknowledged()));
    CHECK(given_back == (sent ? 2 : 0));
    queue.give_back();
    queue.close();
    CHECK(given_back == 2);
  }
}

}  // namespace output_queue_test
}  // namespace batchrpc
