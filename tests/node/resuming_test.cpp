#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/raw_target.hpp"
#include "node/virtual_world.hpp"
#include "session/session.hpp"

namespace batchrpc {
namespace resuming_test {

using namespace std::chrono_literals;
using test::outcome;
using test::RawPeer;
using wire::FrameKind;

Bytes patterned(std::size_t size, unsigned seed) {
  Bytes bytes = Bytes::allocate(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes.mutable_data()[i] = static_cast<std::byte>((i + seed) * 31 >> 3);
  return bytes;
}

/// Two nodes of which `a` makes the connection to `b`; the root keeps out of it.
struct Pair {
  test::VirtualWorld world;
  Node root = world.root();
  Node a = world.join("a");
  Node b = world.join("b");
  int ran = 0;

  Pair() {
    for (Node* node : {&a, &b}) {
      node->expose("twice", [this](int x) {
        ++ran;
        return 2 * x;
      });
      node->expose("echo", [this](Bytes bytes) {
        ++ran;
        return bytes;
      });
      node->expose("later", [this](int x) {
        ++ran;
        promises.push_back({Promise<int>(), x});
        return promises.back().first.get_future();
      });
    }
  }
  void answer_all() {
    for (auto& [promise, x] : promises)
      promise.set_value(2 * x);
    promises.clear();
  }
  // Cuts the connections between the two that there are; the next ones hold.
  void cut() const {
    world.network->set_link("a", "b", {});
    world.network->cut("a", "b");
  }
  static PeerInfo info(const Node& of, const std::string& name) {
    for (const PeerInfo& peer : of.peers()) {
      if (peer.name == name) return peer;
    }
    FAIL("no peer " << name);
    return {};
  }
  std::vector<std::pair<Promise<int>, int>> promises;
};

TEST_CASE("calls under way outlive their connection, in both directions, and run once") {
  Pair pair;
  CHECK(pair.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto there = pair.a.call<int(int)>("b", "later", 5);
  auto back = pair.b.call<int(int)>("a", "later", 6);
  pair.world.run_for(10ms);
  pair.cut();
  pair.world.run_for(1s);
  CHECK_FALSE(there.ready());
  CHECK_FALSE(back.ready());
  pair.answer_all();
  CHECK(there.get() == 10);
  CHECK(back.get() == 12);
  CHECK(pair.ran == 3);
  CHECK(pair.info(pair.a, "b").reconnects == 1);
  CHECK(pair.info(pair.b, "a").reconnects == 1);
  CHECK(pair.info(pair.a, "b").state == PeerState::connected);
  CHECK_FALSE(pair.info(pair.a, "b").last_error.empty());
}

TEST_CASE("a reply that was lost with its connection comes by the next, and is not made again") {
  Pair pair;
  pair.world.network->set_link("a", "b", {.latency = 10ms});
  pair.a.call<int(int)>("b", "twice", 1).get();
  auto call = pair.a.call<int(int)>("b", "twice", 2);
  pair.world.run_for(11ms);  // it has run; its reply is under way
  CHECK(pair.ran == 2);
  pair.cut();
  CHECK(call.get() == 4);
  CHECK(pair.ran == 2);
}

TEST_CASE("a connection may break in the middle of anything, at any byte") {
  const Bytes large = patterned(300'001, 1);
  const Bytes small = patterned(5'000, 2);
  for (std::uint64_t at = 0; at < 1'400'000; at += at < 3000 ? 97 : 39'119) {
    Pair pair;
    pair.world.network->set_link("a", "b", {.max_chunk = 10'000, .break_after = 400 + at});
    auto sum = pair.a.call<int(int)>("b", "twice", 4);
    auto first = pair.a.call<Bytes(Bytes)>("b", "echo", large);
    auto second = pair.a.call<Bytes(Bytes)>("b", "echo", small);
    pair.world.run_for(1us);
    pair.world.network->set_link("a", "b", {});
    INFO("broken after " << 400 + at << " bytes");
    REQUIRE(sum.get() == 8);
    REQUIRE(first.get() == large);
    REQUIRE(second.get() == small);
    REQUIRE(pair.ran == 3);
  }
}

TEST_CASE("calls made while there is no connection leave by the next one, in their order") {
  Pair pair;
  std::vector<int> seen;
  pair.b.expose("note", [&seen](int x) { seen.push_back(x); });
  pair.a.call<int(int)>("b", "twice", 1).get();
  pair.world.network->partition("a", "b");
  pair.cut();
  pair.world.run_for(1s);
  CHECK(pair.info(pair.a, "b").state == PeerState::connecting);
  std::vector<Future<void>> calls;
  for (int i = 0; i < 10; ++i)
    calls.push_back(pair.a.call<void(int)>("b", "note", i));
  pair.a.peer("b").notify<void(int)>("note", 10);
  pair.world.network->heal("a", "b");
  pair.world.run_for(5s);
  for (auto& call : calls)
    call.get();
  CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("who could not be reached for dead_after has lost its session, on both sides") {
  Pair pair;
  pair.a.call<int(int)>("b", "twice", 1).get();
  auto call = pair.a.call<int(int)>("b", "later", 5);
  pair.world.run_for(10ms);
  pair.world.network->partition("a", "b");
  pair.cut();
  auto unsent = pair.a.call<int(int)>("b", "twice", 1);
  pair.world.run_for(6s);
  REQUIRE(call.ready());
  CHECK(outcome(std::move(call)).code() == ErrorCode::peer_lost);
  const auto never_left = outcome(std::move(unsent));
  CHECK(never_left.code() == ErrorCode::not_sent);
  CHECK_FALSE(test::may_have_run(never_left.error()));
  pair.world.network->heal("a", "b");
  pair.world.run_for(1s);
  CHECK(pair.a.call<int(int)>("b", "twice", 2).get() == 4);
  CHECK(pair.ran == 3);
}

TEST_CASE("a peer that lives and has forgotten the session makes its calls Unknown") {
  test::VirtualWorld world;
  Node root = world.root();
  Node a = world.join("a");
  NodeOptions impatient = world.joining("b");
  impatient.liveness.dead_after = 1s;
  Node b(std::move(impatient));
  int ran = 0;
  Promise<int> never;
  b.expose("later", [&] {
    ++ran;
    return never.get_future();
  });
  b.expose("twice", [](int x) { return 2 * x; });
  a.call<int(int)>("b", "twice", 1).get();
  auto call = a.call<int()>("b", "later");
  world.run_for(10ms);
  world.network->partition("a", "b");
  world.network->cut("a", "b");
  auto unsent = a.call<int(int)>("b", "twice", 1);
  world.run_for(3s);
  CHECK_FALSE(call.ready());
  world.network->heal("a", "b");
  world.run_for(2s);
  REQUIRE(call.ready());
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::unknown);
  CHECK(test::may_have_run(result.error()));
  CHECK_THAT(describe(result.error()), Catch::Contains("it is not known whether it ran"));
  CHECK(outcome(std::move(unsent)).code() == ErrorCode::not_sent);
  CHECK(a.call<int(int)>("b", "twice", 2).get() == 4);
  CHECK(ran == 1);
}

TEST_CASE("a session whose first hello was answered in vain begins once") {
  Pair pair;
  pair.world.network->set_link("a", "b", {.latency = 10ms});
  auto call = pair.a.call<int(int)>("b", "twice", 2);
  pair.world.run_for(35ms);  // connected after 20; the hello has arrived, its answer not
  pair.cut();
  CHECK(call.get() == 4);
  CHECK(pair.ran == 1);
}

// --- peers that keep other rules

struct Resuming {
  test::RawTarget target;
  std::uint64_t session = 77;

  void say_hello(RawPeer& peer, std::uint64_t received, bool resumed,
                 std::uint64_t incarnation = 1) const {
    peer.send(wire::hello_frame({.incarnation = incarnation,
                                 .session = session,
                                 .received = received,
                                 .resumed = resumed,
                                 .joins = true,
                                 .name = "raw"}));
  }
};

TEST_CASE("a session goes on by another connection, from where the peer says") {
  Resuming f;
  std::uint64_t received = 0;
  {
    RawPeer first(f.target.world);
    f.say_hello(first, 0, false);
    const auto hello = first.frame(FrameKind::hello);
    REQUIRE(hello);
    CHECK(wire::read_hello(wire::parse_frame(*hello)).session == f.session);
    first.send(test::define(0, "twice", signature<int, int>()));
    first.send(test::call_frame({.number = 0, .id = 5}, 21));
    REQUIRE(first.frame(FrameKind::result));
  }
  f.target.world.run_for(100ms);
  RawPeer second(f.target.world);
  f.say_hello(second, received, true);
  const auto frames = second.frames();
  REQUIRE(frames.size() == 2);
  const auto hello = wire::read_hello(wire::parse_frame(frames[0]));
  CHECK(hello.resumed);
  CHECK(hello.received == 2);  // what this side need not send again
  CHECK(wire::parse_frame(frames[1]).header.kind == FrameKind::result);
  CHECK(wire::parse_frame(frames[1]).header.id == 5);
  CHECK(wire::parse_frame(frames[1]).header.acknowledged == 2);
}

TEST_CASE("what the peer has received is not sent again, and nothing is kept of it") {
  Resuming f;
  {
    RawPeer first(f.target.world);
    f.say_hello(first, 0, false);
    first.send(test::define(0, "twice", signature<int, int>()));
    for (std::uint64_t id = 1; id <= 3; ++id)
      first.send(test::call_frame({.number = 0, .id = id}, 21));
    (void)first.frames();
  }
  RawPeer second(f.target.world);
  f.say_hello(second, 2, true);
  const auto frames = second.frames();
  REQUIRE(frames.size() == 2);
  CHECK(wire::parse_frame(frames[1]).header.id == 3);
}

TEST_CASE("who resumes what is not there is told, and by whom") {
  Resuming f;
  RawPeer peer(f.target.world);
  f.say_hello(peer, 3, true);
  const auto frames = peer.frames();
  REQUIRE(frames.size() == 2);
  const auto hello = wire::read_hello(wire::parse_frame(frames[0]));
  CHECK_FALSE(hello.resumed);
  CHECK(hello.name == "root");
  const auto goodbye = wire::read_goodbye(wire::parse_frame(frames[1]));
  CHECK(static_cast<ErrorCode>(goodbye.code) == ErrorCode::unknown);
  CHECK(peer.closed());
  f.target.next_call_works();
}

TEST_CASE("a session that is resumed where it never was ends") {
  Resuming f;
  RawPeer first(f.target.world);
  f.say_hello(first, 0, false);
  REQUIRE(first.frame(FrameKind::hello));
  RawPeer second(f.target.world);
  f.say_hello(second, 99, true);
  const auto goodbye = second.frame(FrameKind::goodbye);
  REQUIRE(goodbye);
  CHECK(second.closed());
  CHECK(first.closed());
  f.target.next_call_works();
}

TEST_CASE("an acknowledgement of what was never sent ends the connection") {
  Resuming f;
  RawPeer peer(f.target.world);
  f.say_hello(peer, 0, false);
  REQUIRE(peer.frame(FrameKind::hello));
  peer.send(wire::plain_frame({.kind = FrameKind::acknowledge, .acknowledged = 12}));
  CHECK(peer.closed());
  CHECK(f.target.world.log.contain("which was never sent"));
  f.target.next_call_works();
}

TEST_CASE("the session of another life of a node is nobody's") {
  Resuming f;
  {
    RawPeer first(f.target.world);
    f.say_hello(first, 0, false);
    REQUIRE(first.frame(FrameKind::hello));
  }
  RawPeer second(f.target.world);
  f.say_hello(second, 0, true, 2);
  CHECK(second.frame(FrameKind::goodbye));
  f.target.next_call_works();
}

TEST_CASE("a hello that names no session is refused, also one that goes on with it") {
  for (const bool resumed : {false, true}) {
    Resuming f;
    f.session = 0;
    RawPeer peer(f.target.world);
    f.say_hello(peer, 0, resumed);
    const auto goodbye = peer.frame(FrameKind::goodbye);
    REQUIRE(goodbye);
    CHECK_THAT(wire::read_goodbye(wire::parse_frame(*goodbye)).reason,
               Catch::Contains("the hello of raw names no session"));
    CHECK(peer.closed());
    f.target.next_call_works();
  }
}

TEST_CASE("who answers for another session than the one that has begun is refused") {
  const test::VirtualWorld world;
  const auto transport = world.network->transport(world.loop, "odd");
  std::vector<std::unique_ptr<Stream>> streams;
  const auto listener =
      transport->listen(Address::parse("inproc://world"), [&](std::unique_ptr<Stream> stream) {
        const auto hello = wire::hello_frame({.incarnation = 1, .session = 2, .name = "odd"});
        const std::array<std::span<const std::byte>, 1> buffers{std::as_bytes(std::span(hello))};
        CHECK(stream->try_write(buffers).bytes == hello.size() * sizeof(Word));
        streams.push_back(std::move(stream));
      });
  NodeOptions options = world.joining("late");
  options.join_timeout = 3s;
  CHECK_THROWS_AS(Node(std::move(options)), JoinFailed);
  CHECK(streams.size() > 0);
}

TEST_CASE("who only receives acknowledges every 64 KiB, and with each ping") {
  Resuming f;
  RawPeer peer(f.target.world);
  f.say_hello(peer, 0, false);
  peer.send(test::define(0, "twice", signature<int, int>()));
  const std::uint64_t notification = CallTable::kNotifications;
  const auto call =
      test::call_frame({.flags = wire::kNoReply, .number = 0, .id = notification}, 21);
  const std::size_t calls = 64 * 1024 / (call.size() * sizeof(Word)) + 1;
  for (std::size_t i = 0; i < calls; ++i)
    peer.send(call);
  const auto acknowledged = peer.frame(FrameKind::acknowledge);
  REQUIRE(acknowledged);
  CHECK(wire::parse_frame(*acknowledged).header.acknowledged >= calls - 10);
  f.target.world.run_for(1s);
  const auto ping = peer.frame(FrameKind::ping);
  REQUIRE(ping);
  CHECK(wire::parse_frame(*ping).header.acknowledged == calls + 1);
}

}  // namespace resuming_test
}  // namespace batchrpc
