#include "session/session.hpp"
#include "peers/member.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "batchrpc/batchrpc.hpp"
#include "largest_allocation.hpp"
#include "long_tests.hpp"
#include "node/raw_target.hpp"

namespace batchrpc {
namespace session_test {

using namespace std::chrono_literals;
using test::call_frame;
using test::define;
using test::RawPeer;
using Target = test::RawTarget;
using test::twice;
using wire::FrameKind;

TEST_CASE("a hello is answered with a hello, and then calls are") {
  Target target;
  RawPeer peer(target.world);
  peer.say_hello();
  const auto hello = peer.frame(FrameKind::hello);
  REQUIRE(hello);
  CHECK(wire::read_hello(wire::parse_frame(*hello)).name == "root");
  peer.send(define(0, "twice", signature<int, int>()));
  peer.send(call_frame({.number = 0, .id = 77}, 21));
  const auto result = peer.frame(FrameKind::result);
  REQUIRE(result);
  const auto frame = wire::parse_frame(*result);
  CHECK(frame.header.id == 77);
  Decoder decoder(frame.segment(), {});
  CHECK(std::get<0>(decode_struct<int>(decoder, wire::kBodyInSegment)) == 42);
}

TEST_CASE("bytes that come one at a time are put together") {
  test::VirtualWorld world;
  world.network->set_link({.max_chunk = 1});
  Node a = world.root("a");
  Node b = world.join("b");
  b.expose("twice", twice);
  b.expose("echo", [](Bytes bytes) { return bytes; });
  CHECK(a.call<int(int)>("b", "twice", 4).get() == 8);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100},
                                 std::size_t{16 * 1024}, std::size_t{20'001}}) {
    Bytes bytes = Bytes::allocate(size);
    for (std::size_t i = 0; i < size; ++i)
      bytes.mutable_data()[i] = static_cast<std::byte>(i * 7);
    CHECK(a.call<Bytes(Bytes)>("b", "echo", bytes).get() == bytes);
  }
}

TEST_CASE("frames of every size up to the limit arrive, whatever pieces they come in") {
  std::mt19937_64 random(11);
  for (const std::size_t chunk : {std::size_t{7}, std::size_t{1000}, std::size_t{70'000}}) {
    test::VirtualWorld world;
    world.network->set_link({.capacity = 100'000, .max_chunk = chunk});
    Node a = world.root("a");
    Node b = world.join("b");
    b.expose("length", [](const std::string& text) { return text.size(); });
    std::vector<std::pair<std::size_t, Future<std::size_t>>> lengths;
    for (int i = 0; i < 30; ++i) {
      const std::size_t size = random() % (i % 3 == 0 ? 200'000 : 1000);
      lengths.emplace_back(size,
                           a.call<std::size_t(std::string)>("b", "length", std::string(size, 'x')));
    }
    for (auto& [size, length] : lengths)
      CHECK(length.get() == size);
  }
}

TEST_CASE("what is no hello at the beginning ends the connection") {
  Target target;
  const std::vector<std::vector<Word>> wrong{
      wire::plain_frame({.kind = FrameKind::ping}),
      define(0, "twice", signature<int, int>()),
      call_frame({.number = 0, .id = 1}, 1),
      wire::plain_frame({.kind = FrameKind::chunk, .value = 8}),
      wire::plain_frame({.kind = static_cast<FrameKind>(12)}),
      wire::hello_frame({.session = 1, .name = ""}),
      wire::hello_frame({.session = 1, .name = std::string(256, 'x')}),
      wire::hello_frame({.session = 1, .name = std::string(70'000, 'x')}),
      {0x2f20544547, 0x4547},  // an HTTP request
      {~Word{0}},
      {0},
      {Word{9} << 32, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  for (const auto& words : wrong) {
    RawPeer peer(target.world);
    peer.send(words);
    CHECK(peer.closed());
  }
  target.next_call_works();
}

TEST_CASE("what breaks the protocol after the hello ends the connection, and only that") {
  Target target;
  const auto twice_defined = define(0, "twice", signature<int, int>());
  const std::vector<std::vector<std::vector<Word>>> wrong{
      {wire::hello_frame({.name = "raw"})},
      {define(1, "twice", signature<int, int>())},
      {twice_defined, twice_defined},
      {call_frame({.number = 0, .id = 1}, 1)},
      {twice_defined, call_frame({.number = 1, .id = 1}, 1)},
      {wire::plain_frame({.kind = FrameKind::chunk, .id = 1, .value = 8})},
      {wire::plain_frame({.kind = static_cast<FrameKind>(99)})},
      {{Word{0x40000000} << 32}},
      {{(Word{9} << 32) | 1}}};
  std::uint64_t incarnation = 10;
  for (const auto& frames : wrong) {
    RawPeer peer(target.world);
    peer.say_hello("raw", ++incarnation);
    REQUIRE_FALSE(peer.closed());
    for (const auto& words : frames)
      peer.send(words);
    CHECK(peer.closed());
  }
  CHECK(target.node.peers().empty());
  target.next_call_works();
}

TEST_CASE("payloads that lie about their size are refused before anything is allocated for them") {
  Target target;
  const auto size = define(0, "size", signature<std::size_t, Bytes>());
  const auto with_sizes = [](std::vector<std::uint64_t> sizes, std::uint16_t flags) {
    std::vector<Word> words = call_frame({.number = 0, .id = 1}, Bytes::allocate(20'000));
    // The list of sizes is the end of the frame.
    words.resize(words.size() - 1);
    words.insert(words.end(), sizes.begin(), sizes.end());
    words[0] = Word{words.size() - 1} << 32;
    words[8] = (words[8] & 0x7ffffffff) | (Word{sizes.size()} << 35);
    words[5] |= flags;
    return words;
  };
  std::uint64_t incarnation = 10;
  const auto send = [&](const std::vector<Word>& words) {
    auto peer = std::make_unique<RawPeer>(target.world);
    peer->say_hello("raw", ++incarnation);
    peer->send(size);
    test::reset_largest_allocation();
    peer->send(words);
    CHECK(test::largest_allocation() <= 200 * 1024);
    return peer;
  };
  for (const auto& sizes : std::vector<std::vector<std::uint64_t>>{{~std::uint64_t{0}},
                                                                   {std::uint64_t{1} << 40},
                                                                   {65'537},
                                                                   {60'000, 60'000},
                                                                   {~std::uint64_t{0}, 2}}) {
    const auto peer = send(with_sizes(sizes, 0));
    const auto answer = peer->frame(FrameKind::error);
    REQUIRE(answer);
    CHECK_THAT(wire::read_error(wire::parse_frame(*answer)).message,
               Catch::Contains("max_payload_bytes of root, 65536"));
    CHECK_FALSE(peer->closed());
  }
  for (const auto& words : {with_sizes({20'000}, wire::kInlinePayloads),
                            with_sizes({~std::uint64_t{0} - 3}, wire::kInlinePayloads),
                            with_sizes({16'000, 16'000}, wire::kInlinePayloads)}) {
    CHECK(send(words)->closed());
  }
  target.next_call_works();
}

TEST_CASE("chunks that do not fit their call end the connection") {
  Target target;
  const auto chunk = [](std::uint64_t id, std::uint32_t payload, std::uint64_t bytes) {
    auto words =
        wire::plain_frame({.kind = FrameKind::chunk, .number = payload, .id = id, .value = bytes});
    words.resize(words.size() + std::min<std::uint64_t>(wire::padded(bytes), 30'000) / 8);
    return words;
  };
  const auto call = call_frame({.number = 0, .id = 1}, Bytes::allocate(20'000));
  const std::vector<std::vector<std::vector<Word>>> wrong{
      {chunk(2, 0, 100)},
      {chunk(1, 1, 100)},
      {chunk(1, 0, 0)},
      {chunk(1, 0, 20'001)},
      {chunk(1, 0, ~std::uint64_t{0} - 100)},
      {chunk(1, 0, 10'000), chunk(1, 0, 10'001)},
      {chunk(1, 0, 20'000), chunk(1, 0, 1)},
      {call}};
  std::uint64_t incarnation = 10;
  for (const auto& frames : wrong) {
    RawPeer peer(target.world);
    peer.say_hello("raw", ++incarnation);
    peer.send(define(0, "size", signature<std::size_t, Bytes>()));
    peer.send(call);
    REQUIRE_FALSE(peer.closed());
    for (const auto& words : frames)
      peer.send(words);
    CHECK(peer.closed());
  }
  // And the right ones are answered.
  RawPeer peer(target.world);
  peer.say_hello("raw", ++incarnation);
  peer.send(define(0, "size", signature<std::size_t, Bytes>()));
  peer.send(call);
  peer.send(chunk(1, 0, 12'001));
  peer.send(chunk(1, 0, 7'999));
  CHECK(peer.frame(FrameKind::result));
  target.next_call_works();
}

TEST_CASE("replies and chunks of calls that were never made are dropped") {
  Target target;
  RawPeer peer(target.world);
  peer.say_hello();
  auto result = call_frame({.id = 12345}, 1);
  result[5] = (result[5] & ~Word{0xffff0000}) | (Word{3} << 16);
  REQUIRE(wire::parse_frame(result).header.kind == FrameKind::result);
  peer.send(result);
  peer.send(wire::error_frame(12345, std::make_exception_ptr(Unknown("what?"))));
  auto chunk = wire::plain_frame(
      {.kind = FrameKind::chunk, .flags = wire::kOfReply, .id = 12345, .value = 100'000});
  chunk.resize(chunk.size() + 100'000 / 8);
  peer.send(chunk);
  peer.send(wire::plain_frame({.kind = FrameKind::ping}));
  CHECK(peer.frame(FrameKind::pong));
}

TEST_CASE("a node that calls many peers which do not answer still accepts others") {
  Target target;
  // Peers with addresses where somebody listens, but says nothing.
  const auto transport = target.world.network->transport(target.world.loop, "mute");
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (std::uint32_t i = 0; i < 70; ++i) {
    const std::string name = "mute" + std::to_string(i);
    listeners.push_back(transport->listen(Address::parse("inproc://" + name), [&](auto stream) {
      streams.push_back(std::move(stream));
    }));
    peers.push_back(std::make_unique<RawPeer>(target.world));
    peers.back()->say_hello(name, i + 1);
    peers.back()->send(define(0, "batchrpc.join", signature<JoinReply, Member, std::int32_t>()));
    Encoder encoder(wire::kEnvelopeWords);
    const Member member{
        .name = name, .incarnation = i + 1, .host = {}, .addresses = {"inproc://" + name}};
    encode_struct<Member, std::int32_t>(encoder, wire::kBodyPointer, member, 0);
    wire::finish_frame(encoder, {.kind = FrameKind::call, .id = 1});
    peers.back()->send(encoder.words());
  }
  CHECK(target.node.peers().size() == 70);
  for (const auto& peer : peers)  // whose session ends: the node begins another one
    peer->send(wire::plain_frame({.kind = static_cast<FrameKind>(99)}));
  peers.clear();
  target.world.run_for(10ms);
  CHECK(streams.size() == 70);
  target.next_call_works();
}

TEST_CASE("random bytes and mutated frames do no harm") {
  // 10^5 that were parsed, on connections that have said hello and on such that have not.
  Target target(LogLevel::off);
  std::mt19937_64 random(17);
  const auto bytes_call = call_frame({.number = 1, .id = 9}, Bytes::allocate(1000));
  const auto large_call = call_frame({.number = 1, .id = 10}, Bytes::allocate(20'000));
  auto chunk = wire::plain_frame({.kind = FrameKind::chunk, .id = 10, .value = 20'000});
  chunk.resize(chunk.size() + 20'000 / 8);
  const std::vector<std::vector<Word>> frames{
      define(0, "twice", signature<int, int>()),
      define(1, "size", signature<std::size_t, Bytes>()),
      call_frame({.number = 0, .id = 8}, 21),
      bytes_call,
      large_call,
      chunk,
      wire::plain_frame({.kind = FrameKind::ping}),
      wire::error_frame(3, std::make_exception_ptr(std::runtime_error("what"))),
      call_frame({.flags = wire::kNoReply, .number = 0}, 1)};

  test::reset_largest_allocation();
  const std::size_t before = test::allocated_bytes();
  const int pieces = test::times_on_one_thread(100'000, 1'000'000);
  const auto ping = wire::plain_frame({.kind = FrameKind::ping});
  int parsed = 0;
  std::uint64_t connections = 0;
  while (parsed < pieces) {
    // The loop keeps the deadline of each connect until it has passed.
    if (connections % 4096 == 0) target.world.run_for(10s);
    RawPeer peer(target.world);
    REQUIRE(peer.connected());
    ++connections;
    const bool introduced = random() % 8 != 0;
    if (introduced) peer.say_hello("raw", connections + 1);
    // It reads on behind the piece, or has refused it; else it waits for the rest.
    const auto is_parsed = [&] {
      peer.send(ping);
      return peer.closed() || peer.frame(FrameKind::pong);
    };
    for (std::size_t i = 0; i < 50 && !peer.closed(); ++i) {
      if (random() % 16 == 0) {
        std::vector<Word> noise(random() % 40);
        for (Word& word : noise)
          word = random();
        peer.send(noise);
        if (!is_parsed()) break;
        ++parsed;
        continue;
      }
      auto words = frames[introduced && i < frames.size() ? i : random() % frames.size()];
      if (i >= frames.size() || random() % 8 == 0) {
        const auto changes = random() % 3;
        for (std::uint64_t change = 0; change < changes; ++change) {
          const std::size_t at = random() % std::min<std::size_t>(words.size(), 24);
          words[at] = random() % 4 == 0 ? random() : words[at] ^ (Word{1} << (random() % 64));
        }
      }
      auto bytes = std::as_bytes(std::span(words));
      if (random() % 64 == 0) bytes = bytes.first(random() % bytes.size());
      peer.send(bytes);
      if (!is_parsed()) break;
      ++parsed;
    }
  }
  CHECK(connections > static_cast<std::uint64_t>(pieces) / 100);
  // Most are read on behind; not those that announce more than follows.
  CHECK(connections < static_cast<std::uint64_t>(pieces) * 3 / 4);
  CHECK(test::largest_allocation() <= 512 * 1024);
  target.world.run_for(10s);
  CHECK(target.node.peers().empty());
  CHECK(test::allocated_bytes() < before + (std::size_t{4} << 20));
  target.next_call_works();
}

}  // namespace session_test
}  // namespace batchrpc
