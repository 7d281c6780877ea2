#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "largest_allocation.hpp"
#include "node/announced_calls.hpp"
#include "node/raw_target.hpp"
#include "peers/member.hpp"

// Peers that say what they want of transfers.

namespace batchrpc {
namespace held_peers_test {

using namespace std::chrono_literals;
using test::AnnouncedCalls;
using test::call_frame;
using test::define;
using test::outcome;
using test::RawPeer;
using test::Swallow;
using wire::FrameKind;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A node and a peer of its group that sends what a test wants.
struct Target {
  Target() {
    const test::Swallower swallower;
    announced = swallower.announced;
    announced->holds = true;
    node.expose("swallow", swallower, {.short_handler = true});
    node.expose("twice", test::twice);
    peer.say_hello();
    peer.send(test::join_as_raw(0, 1));
    REQUIRE(peer.frame(FrameKind::result));
    peer.send(define(1, "swallow", signature<std::size_t, int, Bytes>()));
    peer.send(define(2, "twice", signature<int, int>()));
  }

  /// The peer calls, and sends no payload yet.
  void call_with_payload(std::uint64_t id, int number, std::size_t size) {
    Encoder encoder(wire::kEnvelopeWords);
    encode_struct<int, Bytes>(encoder, wire::kBodyPointer, number, Bytes::allocate(size));
    wire::finish_frame(encoder, {.kind = FrameKind::call, .number = 1, .id = id});
    peer.send(encoder.words());
  }
  void send_chunk(std::uint64_t id, std::size_t size, int value) {
    auto words = wire::plain_frame({.kind = FrameKind::chunk, .id = id, .value = size});
    const std::size_t header = words.size();
    words.resize(header + wire::padded(size) / sizeof(Word));
    std::memset(words.data() + header, value, size);
    peer.send(words);
  }
  void send(FrameKind kind, std::uint64_t id, std::uint64_t value = 0) {
    peer.send(wire::plain_frame({.kind = kind, .id = id, .value = value}));
  }
  void twice_works(std::uint64_t id) {
    peer.send(call_frame({.number = 2, .id = id}, 21));
    const auto result = peer.frame(FrameKind::result);
    REQUIRE(result);
    CHECK(wire::parse_frame(*result).header.id == id);
  }
  /// The ids of the frames of a kind, and how many bytes of chunks, that have come since last time.
  std::pair<std::vector<std::uint64_t>, std::uint64_t> received(FrameKind kind) {
    std::pair<std::vector<std::uint64_t>, std::uint64_t> all;
    for (const auto& words : peer.frames()) {
      const auto header = wire::parse_frame(words).header;
      if (header.kind == kind) all.first.push_back(header.id);
      if (header.kind == FrameKind::chunk) all.second += header.value;
    }
    return all;
  }

  test::VirtualWorld world;
  std::shared_ptr<AnnouncedCalls> announced;
  Node node = world.root();
  RawPeer peer{world};
};

TEST_CASE("a sender is told to wait, then to send") {
  Target target;
  target.call_with_payload(5, 1, 20 * kMiB);
  auto credit = target.peer.frame(FrameKind::credit);
  REQUIRE(credit);
  CHECK(wire::parse_frame(*credit).header.id == 5);
  CHECK(wire::parse_frame(*credit).header.value == wire::kNoCredit);
  target.announced->calls.at(1).gate->open();
  target.announced->calls.at(1).gate->open();
  credit = target.peer.frame(FrameKind::credit);
  REQUIRE(credit);
  CHECK(wire::parse_frame(*credit).header.id == 5);
  CHECK(wire::parse_frame(*credit).header.value == wire::kAllCredit);
  CHECK_FALSE(target.peer.frame(FrameKind::credit));
}

TEST_CASE("a sender is asked for calls of more than 1 MiB") {
  Target target;
  target.announced->holds = false;
  target.call_with_payload(5, 1, kMiB);
  target.call_with_payload(6, 2, kMiB + 1);
  const auto credit = target.peer.frame(FrameKind::credit);
  REQUIRE(credit);
  CHECK(wire::parse_frame(*credit).header.id == 6);
  CHECK(wire::parse_frame(*credit).header.value == wire::kAllCredit);
  CHECK_FALSE(target.peer.frame(FrameKind::credit));
  target.call_with_payload(7, 3, 2 * kMiB);
  target.announced->calls.at(3).gate->open();  // which was not shut
  CHECK(target.received(FrameKind::credit).first == std::vector<std::uint64_t>{7});
}

TEST_CASE("a call is sent to 1 MiB, and to its end when its receiver asks, or it times out") {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 32;  // the node's first call
  for (const bool asked : {true, false}) {
    Target target;
    auto call = target.node.peer("raw")
                    .with({.timeout = 4s})
                    .call<Swallow>("swallow", 1, Bytes::allocate(4 * kMiB));
    target.world.run_for(1s);
    CHECK(target.received(FrameKind::cancel).second == kMiB);
    target.world.run_for(1s);
    CHECK(target.received(FrameKind::cancel).second == 0);
    if (asked) target.send(FrameKind::credit, kFirst, wire::kAllCredit);
    target.world.run_for(1s);
    CHECK(target.received(FrameKind::cancel).second == (asked ? 3 * kMiB : 0));
    target.world.run_for(2s);
    const auto result = outcome(std::move(call));
    CHECK(result.code() == ErrorCode::timed_out);
    CHECK(test::may_have_run(result.error()) == asked);
    CHECK(target.received(FrameKind::cancel).first == std::vector<std::uint64_t>{kFirst});
    CHECK_FALSE(target.peer.closed());
  }
}

TEST_CASE("a held call of no more than 1 MiB that comes as a whole runs all the same") {
  Target target;
  for (const std::size_t chunks : {std::size_t{1}, std::size_t{4}}) {
    const auto number = static_cast<int>(chunks);
    const std::size_t size = chunks * 256 * 1024;
    target.call_with_payload(chunks, number, size);
    for (std::size_t i = 0; i < chunks; ++i)
      target.send_chunk(chunks, 256 * 1024, static_cast<int>(i));
    const auto result = target.peer.frame(FrameKind::result);
    REQUIRE(result);
    CHECK(wire::parse_frame(*result).header.id == chunks);
    const AnnouncedCalls::Call& call = target.announced->calls.at(number);
    CHECK(call.asked == 1);
    CHECK(call.argument.data() == call.memory.data());
    CHECK(call.argument.size() == size);
    bool right = true;
    for (std::size_t i = 0; i < size; ++i)
      right = right && call.argument.data()[i] == static_cast<std::byte>(i / (256 * 1024));
    CHECK(right);
  }
}

TEST_CASE("who sends more than 1 MiB of a held call before it was asked breaks the protocol") {
  Target target;
  target.call_with_payload(5, 1, 20 * kMiB);
  for (int i = 0; i < 4; ++i)
    target.send_chunk(5, 256 * 1024, i);
  REQUIRE_FALSE(target.peer.closed());
  target.send_chunk(5, 8, 4);
  CHECK(target.peer.closed());
  CHECK(target.announced->calls.at(1).asked == 0);
  CHECK_FALSE(target.announced->calls.at(1).ran);
  CHECK(target.world.log.contain("arrived before they were requested"));
}

TEST_CASE("what a call that was answered has yet to send is not sent") {
  for (const bool paused : {true, false}) {
    Target target;
    auto memory = std::make_shared<std::vector<std::byte>>(4 * kMiB);
    const std::weak_ptr<void> watch = memory;
    auto call = target.node.call<Swallow>("raw", "swallow", 1,
                                          Bytes(memory, std::span<const std::byte>(*memory)));
    memory.reset();
    constexpr std::uint64_t id = std::uint64_t{1} << 32;  // the node's first call
    if (paused) target.send(FrameKind::credit, id, wire::kNoCredit);
    target.world.run_for(1s);  // the peer does not read
    CHECK_FALSE(watch.expired());
    target.peer.send(wire::error_frame(id, std::make_exception_ptr(Overloaded("no room")), false));
    CHECK(outcome(std::move(call)).code() == ErrorCode::overloaded);
    CHECK(target.received(FrameKind::cancel).first == std::vector<std::uint64_t>{id});
    target.peer.acknowledge();
    CHECK(watch.expired());
    CHECK_FALSE(target.peer.closed());
  }
}

TEST_CASE("a call that is cancelled while it comes in is forgotten, and never runs") {
  Target target;
  for (const bool held : {true, false}) {
    target.announced->holds = held;
    const std::uint64_t id = held ? 5 : 6;
    target.call_with_payload(id, 1, 4 * kMiB);
    target.send_chunk(id, 256 * 1024, 1);
    CHECK_FALSE(target.announced->let_go(1));
    target.send(FrameKind::cancel, id);
    CHECK(target.announced->let_go(1));
    target.announced->calls.at(1).gate->open();
    target.twice_works(100 + id);
  }
  CHECK_FALSE(target.announced->calls.at(1).ran);
  target.send_chunk(5, 256 * 1024, 1);  // of no call
  CHECK(target.peer.closed());
}

TEST_CASE(
    "a cancel of a call that has run, or never was, does nothing, and of one that runs there is no "
    "reply") {
  Target target;
  std::map<int, Promise<int>> running;
  target.node.expose("later", [&running](int number) { return running[number].get_future(); });
  target.peer.send(define(3, "later", signature<int, int>()));
  target.peer.send(call_frame({.number = 3, .id = 7}, 1));
  target.peer.send(call_frame({.number = 3, .id = 8}, 2));
  for (const std::uint64_t id : {std::uint64_t{8}, std::uint64_t{1}, ~std::uint64_t{0}})
    target.send(FrameKind::cancel, id);
  running.at(2).set_value(1);
  CHECK_FALSE(target.peer.frame(FrameKind::result));
  running.at(1).set_value(1);
  const auto result = target.peer.frame(FrameKind::result);
  REQUIRE(result);
  CHECK(wire::parse_frame(*result).header.id == 7);
  target.send(FrameKind::cancel, 7);
  target.twice_works(9);
}

TEST_CASE("any credits and cancels leave a node as it is") {
  Target target;
  std::mt19937_64 random(11);
  std::vector<Future<std::size_t>> calls;
  std::vector<std::uint64_t> ids{0, 5, std::uint64_t{1} << 62, ~std::uint64_t{0}};
  int number = 0;
  std::size_t before = 0;
  for (int round = 0; round < 3000; ++round) {
    if (round == 1000) before = test::allocated_bytes();
    const std::uint64_t id = random() % 8 == 0 ? random() : ids[random() % ids.size()];
    switch (random() % 16) {
      case 0: {  // of the node, with a payload; answered by nobody
        const std::size_t size = random() % 4 == 0 ? 1'500'000 : 300'000;
        calls.push_back(target.node.peer("raw")
                            .with({.timeout = 1s})
                            .call<Swallow>("swallow", 1, Bytes::allocate(size)));
        break;
      }
      case 1: {
        const std::uint64_t own = 1000 + static_cast<std::uint64_t>(round);
        target.call_with_payload(own, ++number, 600'000);
        if (random() % 2 == 0) target.send_chunk(own, 200'000, 1);
        if (random() % 2 == 0) target.announced->calls.at(number).gate->open();
        target.send(FrameKind::cancel, own);
        break;
      }
      case 2:
        target.send(FrameKind::cancel, id);
        break;
      case 3:
        target.world.run_for(std::chrono::milliseconds(random() % 200));
        break;
      default:
        target.send(FrameKind::credit, id,
                    random() % 3 == 0   ? random()
                    : random() % 2 == 0 ? wire::kNoCredit
                                        : wire::kAllCredit);
    }
    for (const auto& words : target.peer.frames()) {
      const auto header = wire::parse_frame(words).header;
      if (header.kind == FrameKind::call) ids.push_back(header.id);
    }
    target.peer.acknowledge();
    if (ids.size() > 40) ids.erase(ids.begin() + 4, ids.begin() + 20);
    std::erase_if(calls, [](const auto& call) { return call.ready(); });
  }
  REQUIRE_FALSE(target.peer.closed());
  target.world.run_for(2s);
  (void)target.peer.frames();
  target.peer.acknowledge();
  for (auto& call : calls)
    CHECK(call.ready());
  calls.clear();
  for (auto& [index, call] : target.announced->calls)
    CHECK(target.announced->let_go(index));
  target.announced->calls.clear();
  target.world.run_for(2s);
  CHECK(test::allocated_bytes() < before + kMiB);
  target.twice_works(7);
}

}  // namespace held_peers_test
}  // namespace batchrpc
