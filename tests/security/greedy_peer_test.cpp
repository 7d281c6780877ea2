#include <catch2/catch.hpp>

#include "largest_allocation.hpp"
#include "node/raw_target.hpp"

// Peers that keep to the protocol, and would have all of a node's memory, or block others.

namespace batchrpc {
namespace greedy_peer_test {

using namespace std::chrono_literals;

using test::call_frame;
using test::define;
using test::RawPeer;
using Target = test::RawTarget;
using test::twice;
using wire::FrameKind;

TEST_CASE("a call that needs more memory than there is fails alone") {
  test::VirtualWorld world;
  NodeOptions options = world.options("root");
  options.limits.max_payload_bytes = std::uint64_t{1} << 48;
  const Node root(options);
  root.expose("twice", twice);
  root.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  RawPeer peer(world);
  peer.say_hello();
  peer.send(define(0, "size", signature<std::size_t, Bytes>()));
  auto words = call_frame({.number = 0, .id = 1}, Bytes::allocate(20'000));
  words.back() = std::uint64_t{1} << 47;
  peer.send(words);
  peer.send(wire::plain_frame({.kind = FrameKind::chunk, .id = 1, .value = 8}));
  peer.send({Word{0}});
  CHECK_FALSE(peer.closed());  // there is memory when 64 KiB are there
  (void)peer.frames();
  constexpr std::size_t kRest = 64 * 1024 - 8;
  for (int i = 0; i < 2; ++i) {  // the second one is dropped
    peer.send(wire::plain_frame({.kind = FrameKind::chunk, .id = 1, .value = kRest}));
    peer.send(std::vector<Word>(kRest / sizeof(Word)));
  }
  const auto answer = peer.frame(FrameKind::error);
  REQUIRE(answer);
  const wire::ErrorBody error = wire::read_error(wire::parse_frame(*answer));
  CHECK(error.code == static_cast<std::uint16_t>(ErrorCode::overloaded));
  CHECK_FALSE(error.may_have_run);
  CHECK_THAT(error.message, Catch::Contains("'size' was not run: root has no memory for its 1407"));
  peer.send(call_frame({.number = 0, .id = 2}, Bytes::allocate(10)));
  CHECK(peer.frame(FrameKind::result));
  CHECK_FALSE(peer.closed());
  const Node other = world.join("other");
  CHECK(other.call<int(int)>("root", "twice", 4).get() == 8);
}

TEST_CASE(
    "a reply that needs more memory than there is fails its call alone, which may wait then") {
  test::VirtualWorld world;
  NodeOptions options = world.options("root");
  options.limits.max_payload_bytes = std::uint64_t{1} << 48;
  const Node root(options);
  const Node other = world.join("other");
  other.expose("twice", twice);
  RawPeer peer(world);
  peer.say_hello();
  peer.send(test::join_as_raw(0, 99));
  REQUIRE(peer.frame(FrameKind::result));
  int waited = 0;
  auto done = root.call<Bytes()>("raw", "give").then([&](Result<Bytes> result) {
    CHECK(result.code() == ErrorCode::overloaded);
    CHECK(test::may_have_run(result.error()));
    waited = root.call<int(int)>("other", "twice", 4).get();  // reads on meanwhile
  });
  world.run_for(1s);
  const auto call = peer.frame(FrameKind::call);
  REQUIRE(call);
  Encoder encoder(wire::kEnvelopeWords);
  encode_struct<Bytes>(encoder, wire::kBodyPointer, Bytes::allocate(20'000));
  wire::finish_frame(encoder,
                     {.kind = FrameKind::result, .id = wire::parse_frame(*call).header.id});
  std::vector<Word> words = encoder.words();
  words.back() = std::uint64_t{1} << 47;
  const auto chunk = wire::plain_frame({.kind = FrameKind::chunk,
                                        .flags = wire::kOfReply,
                                        .id = wire::parse_frame(*call).header.id,
                                        .value = 64 * 1024});
  words.insert(words.end(), chunk.begin(), chunk.end());
  words.resize(words.size() + 64 * 1024 / sizeof(Word), ~Word{0});
  const auto ping = wire::plain_frame({.kind = FrameKind::ping, .id = 77});
  words.insert(words.end(), ping.begin(), ping.end());
  peer.send(words);
  world.run_for(100ms);
  CHECK(waited == 8);
  CHECK(done.ready());
  CHECK(peer.frame(FrameKind::pong));
  CHECK_FALSE(peer.closed());
}

TEST_CASE("who defines functions without end loses its connection") {
  Target target;
  RawPeer peer(target.world);
  peer.say_hello();
  const std::size_t before = test::allocated_bytes();
  const std::string long_signature(60 * 1024, 'i');
  for (std::uint32_t i = 0; i < 500 && !peer.closed(); ++i)
    peer.send(define(i, "f" + std::to_string(i), long_signature));
  CHECK(peer.closed());
  CHECK(test::allocated_bytes() < before + (std::size_t{20} << 20));
  target.next_call_works();
}

TEST_CASE("who pings and does not read gathers no pongs") {
  Target target;
  target.world.network->set_link({.capacity = 64 * 1024});
  RawPeer peer(target.world);
  peer.say_hello();
  std::vector<Word> pings;
  for (int i = 0; i < 1000; ++i) {
    const auto ping = wire::plain_frame({.kind = FrameKind::ping});
    pings.insert(pings.end(), ping.begin(), ping.end());
  }
  peer.send(pings);
  const std::size_t before = test::allocated_bytes();
  for (int i = 0; i < 200; ++i)
    peer.send(pings);
  CHECK(test::allocated_bytes() < before + (std::size_t{1} << 20));
  CHECK(peer.frame(FrameKind::pong));
  target.next_call_works();
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_CASE("a peer that announces a row, and sends little of it or nothing, blocks no other") {
  test::VirtualWorld world;
  const Node node = world.root();
  const Batcher<std::size_t(Bytes)> batcher({.max_queue_bytes = 4 * kMiB},
                                            [](const std::vector<Bytes>& rows) {
                                              std::vector<std::size_t> sizes;
                                              for (const Bytes& row : rows)
                                                sizes.push_back(row.size());
                                              return sizes;
                                            });
  node.expose("size", batcher);
  const Node bob = world.join("bob");
  RawPeer mallory(world);
  mallory.say_hello();
  mallory.send(define(0, "size", signature<std::size_t, Bytes>()));
  auto row = call_frame({.number = 0, .id = 1}, Bytes::allocate(20'000));
  row.back() = 4 * kMiB;
  mallory.send(row);
  const auto call = [&bob](std::size_t size) {
    return bob.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(size));
  };
  CHECK(call(1).get() == 1);
  CHECK(call(kMiB).get() == kMiB);
  auto beyond_share = call(3 * kMiB);
  for (int i = 0; i < 4; ++i) {
    auto chunk = wire::plain_frame({.kind = FrameKind::chunk, .id = 1, .value = 100'000});
    chunk.resize(chunk.size() + wire::padded(100'000) / sizeof(Word));
    mallory.send(chunk);
    world.run_for(4s);
    mallory.send(wire::plain_frame({.kind = FrameKind::ping}));
  }
  CHECK_FALSE(beyond_share.ready());
  for (int i = 0; i < 10; ++i) {
    world.run_for(1s);
    mallory.send(wire::plain_frame({.kind = FrameKind::ping}));
  }
  CHECK(beyond_share.ready());
  CHECK_FALSE(mallory.closed());
}

}  // namespace greedy_peer_test
}  // namespace batchrpc
