#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/node_core.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "node/virtual_world.hpp"
#include "peers/member.hpp"

// A node is who it says it is: nobody else can take its name, go on with its session, or bring the
// root's news.

namespace batchrpc {
namespace identity_test {

using namespace std::chrono_literals;
using Catch::Contains;
using test::call_frame;
using test::define;
using test::outcome;
using test::RawPeer;
using test::VirtualWorld;
using wire::FrameKind;

std::uint64_t incarnation_of(const Node& node) {
  return detail::NodeAccess::core(node)->incarnation();
}

/// A root and two members that can call each other.
struct Trio {
  VirtualWorld world;
  Node root = exposing(world.root());
  Node alice = exposing(world.join("alice"));
  Node bob = exposing(world.join("bob"));

  static Node exposing(Node node) {
    node.expose("caller", [] { return CallContext::current()->caller().name; });
    return node;
  }
  static std::string call(const Node& from, const std::string& to) {
    return from.call<std::string()>(to, "caller").get();
  }
  void all_call_each_other() const {
    CHECK(call(alice, "bob") == "alice");
    CHECK(call(bob, "alice") == "bob");
    CHECK(call(root, "alice") == "root");
    CHECK(call(root, "bob") == "root");
    CHECK(call(alice, "root") == "alice");
    CHECK(call(bob, "root") == "bob");
  }
};

std::optional<wire::Goodbye> goodbye_of(RawPeer& peer) {
  const auto words = peer.frame(FrameKind::goodbye);
  if (!words) return std::nullopt;
  return wire::read_goodbye(wire::parse_frame(*words));
}

TEST_CASE("a hello in a member's name and incarnation is refused without the member's secret") {
  Trio trio;
  trio.all_call_each_other();
  for (const Node* target : {&trio.root, &trio.bob}) {
    RawPeer impostor(trio.world, target->address());
    impostor.send(wire::hello_frame({.incarnation = incarnation_of(trio.alice),
                                     .session = 5,
                                     .name = "alice",
                                     .secret = {.first = 1, .second = 2}}));
    const auto goodbye = goodbye_of(impostor);
    REQUIRE(goodbye);
    CHECK(goodbye->code == static_cast<std::uint16_t>(ErrorCode::permission_denied));
    CHECK_THAT(goodbye->reason, Contains("lacks the secret"));
    CHECK(impostor.closed());
    trio.all_call_each_other();
  }
}

TEST_CASE("a node cannot be talked to in its own name") {
  Trio trio;
  RawPeer impostor(trio.world, trio.bob.address());
  impostor.send(
      wire::hello_frame({.incarnation = incarnation_of(trio.bob), .session = 5, .name = "bob"}));
  CHECK(goodbye_of(impostor));
  CHECK(Trio::call(trio.bob, "bob") == "bob");
  CHECK(Trio::call(trio.root, "root") == "root");
}

TEST_CASE("an address does not tell its node's incarnation") {
  VirtualWorld world;
  const Node root = world.root();
  const Node alice = world.join("alice");
  CHECK(alice.address().find(std::to_string(incarnation_of(alice))) == std::string::npos);
}

TEST_CASE("a member ignores a hello of a node that the root has not introduced") {
  Trio trio;
  trio.all_call_each_other();
  RawPeer stranger(trio.world, trio.bob.address());
  stranger.send(wire::hello_frame({.incarnation = 77, .session = 5, .name = "alice"}));
  trio.world.run_for(4900ms);
  CHECK(stranger.frames().empty());
  CHECK_FALSE(stranger.closed());
  trio.all_call_each_other();
  trio.world.run_for(200ms);
  CHECK(stranger.closed());
  CHECK(trio.world.log.contain("the root has not introduced 'alice'"));
  trio.all_call_each_other();
}

TEST_CASE("a hello that overtakes the root's news of its sender waits for them") {
  VirtualWorld world;
  const Node root = world.root();
  world.network->set_link("root", "bob", {.latency = 500ms});
  world.network->set_link("bob", "root", {.latency = 500ms});
  const Node bob = Trio::exposing(world.join("bob"));
  const Node alice = world.join("alice");
  const TimePoint before = world.loop->now();
  CHECK(Trio::call(alice, "bob") == "alice");
  CHECK(world.loop->now() - before >= 400ms);
  CHECK(world.loop->now() - before <= 1s);
}

TEST_CASE("a secret that a stranger gets under a name is of no use to pose as its sender") {
  VirtualWorld world;
  const Node root = world.root();
  RawPeer early(world);
  early.say_hello("bob", 77);  // before the real one
  const auto answer = early.frame(FrameKind::hello);
  REQUIRE(answer);
  const wire::Hello roots = wire::read_hello(wire::parse_frame(*answer));
  early.send(wire::goodbye_frame({.code = 12, .reason = "done"}));
  world.run_for(10s);
  const Node bob = Trio::exposing(world.join("bob"));
  RawPeer impostor(world, bob.address());
  wire::Hello hello = roots;
  hello.session = 5;
  hello.receiver = 0;
  impostor.send(wire::hello_frame(hello));
  const auto goodbye = goodbye_of(impostor);
  REQUIRE(goodbye);
  CHECK(goodbye->code == static_cast<std::uint16_t>(ErrorCode::permission_denied));
  CHECK(Trio::call(root, "bob") == "root");
}

TEST_CASE("a hello for another incarnation is answered without a secret, and not kept") {
  Trio trio;
  RawPeer peer(trio.world);
  peer.send(wire::hello_frame({.incarnation = 3,
                               .session = 9,
                               .name = "raw",
                               .secret = {1, 2},
                               .receiver = incarnation_of(trio.root) + 2}));
  const auto frames = peer.frames();
  REQUIRE(frames.size() == 2);
  const wire::Hello answer = wire::read_hello(wire::parse_frame(frames[0]));
  CHECK(answer.incarnation == incarnation_of(trio.root));
  CHECK(answer.session == 0);
  CHECK(answer.secret == Secret{});
  CHECK(wire::parse_frame(frames[1]).header.kind == FrameKind::goodbye);
  CHECK(peer.closed());
}

TEST_CASE("a rank in a hello counts only once its sender has joined") {
  VirtualWorld world;
  const Node root = world.root();
  int rank = 99;
  root.expose("rank", [&rank] { rank = CallContext::current()->caller().rank; });
  RawPeer peer(world);
  peer.send(
      wire::hello_frame({.rank = 0, .incarnation = 3, .session = 9, .joins = true, .name = "raw"}));
  peer.send(define(0, "rank", signature<void>()));
  peer.send(call_frame({.number = 0, .id = 1}, std::int32_t{0}));
  world.run_for(1s);
  CHECK(rank == -1);
}

TEST_CASE("no two nodes have one incarnation, and none has the incarnation 0") {
  Trio trio;
  RawPeer twin(trio.world);
  twin.say_hello("twin", incarnation_of(trio.bob));
  const auto goodbye = goodbye_of(twin);
  REQUIRE(goodbye);
  CHECK_THAT(goodbye->reason, Contains("is that of bob"));
  RawPeer none(trio.world);
  none.say_hello("none", 0);
  CHECK(none.closed());
  trio.all_call_each_other();
}

TEST_CASE("a peer has four connections at most, and gets another one when one ends") {
  VirtualWorld world;
  const Node root = world.root();
  std::vector<std::unique_ptr<RawPeer>> peers;
  const auto connect = [&](std::uint64_t session) {
    peers.push_back(std::make_unique<RawPeer>(world));
    peers.back()->send(wire::hello_frame(
        {.incarnation = 3, .session = session, .joins = true, .name = "raw", .secret = {1, 2}}));
    return goodbye_of(*peers.back());
  };
  for (std::uint64_t session = 1; session <= 4; ++session)
    CHECK_FALSE(connect(session));
  const auto refused = connect(5);
  REQUIRE(refused);
  CHECK(refused->code == static_cast<std::uint16_t>(ErrorCode::overloaded));
  CHECK_THAT(refused->reason, Contains("raw has 4 connections to this node already"));
  peers.erase(peers.begin());
  world.run_for(10ms);
  CHECK_FALSE(connect(6));
}

TEST_CASE("a peer that has not joined is dropped after 30 s, also if it resumes its session") {
  VirtualWorld world;
  const Node root = world.root();
  wire::Hello hello{.incarnation = 3, .session = 9, .joins = true, .name = "raw", .secret = {1, 2}};
  auto first = std::make_unique<RawPeer>(world);
  first->send(wire::hello_frame(hello));
  REQUIRE(first->frame(FrameKind::hello));
  hello.resumed = true;
  RawPeer second(world);
  second.send(wire::hello_frame(hello));
  REQUIRE(second.frame(FrameKind::hello));
  for (int i = 0; i < 29; ++i) {
    second.send(wire::plain_frame({.kind = FrameKind::ping, .id = 1}));
    world.run_for(1s);
  }
  CHECK_FALSE(second.closed());
  for (int i = 0; i < 2; ++i) {
    second.send(wire::plain_frame({.kind = FrameKind::ping, .id = 1}));
    world.run_for(1s);
  }
  CHECK(second.closed());
}

TEST_CASE("a session is resumed only by the node that began it") {
  VirtualWorld world;
  const Node root = world.root();
  const wire::Hello hello{
      .incarnation = 3, .session = 9, .joins = true, .name = "raw", .secret = {1, 2}};
  auto first = std::make_unique<RawPeer>(world);
  first->send(wire::hello_frame(hello));
  REQUIRE(first->frame(FrameKind::hello));
  first.reset();
  wire::Hello again = hello;
  again.resumed = true;
  again.secret = {1, 3};
  RawPeer thief(world);
  thief.send(wire::hello_frame(again));
  const auto frames = thief.frames();
  REQUIRE(frames.size() == 2);
  const wire::Hello answer = wire::read_hello(wire::parse_frame(frames[0]));
  CHECK(answer.session == 0);
  CHECK(answer.secret == Secret{});  // else the thief could pose as the root
  CHECK(wire::parse_frame(frames[1]).header.kind == FrameKind::goodbye);
  again.secret = {1, 2};
  RawPeer owner(world);
  owner.send(wire::hello_frame(again));
  const auto resumed = owner.frame(FrameKind::hello);
  REQUIRE(resumed);
  CHECK(wire::read_hello(wire::parse_frame(*resumed)).resumed);
}

TEST_CASE("news of members are taken from the root alone") {
  Trio trio;
  const auto left_signature = signature<void, std::string, std::uint64_t, std::string>();
  for (const Node* target : {&trio.root, &trio.bob}) {
    const std::string to = target == &trio.root ? "root" : "bob";
    const auto left = outcome(trio.alice.call<void(std::string, std::uint64_t, std::string)>(
        to, "batchrpc.left", "bob", incarnation_of(trio.bob), "it was told so"));
    CHECK(left.code() == ErrorCode::permission_denied);
    CHECK_THAT(left.message(), Contains("does not let alice call"));
    const Member evil{.name = "evil", .rank = 7, .incarnation = 9};
    const auto joined = outcome(trio.alice.call<void(Member)>(to, "batchrpc.joined", evil));
    CHECK(joined.code() == ErrorCode::permission_denied);
    CHECK(target->peers().size() == 2);
  }
  RawPeer stranger(trio.world);
  stranger.say_hello();
  stranger.send(define(0, "batchrpc.left", left_signature));
  stranger.send(define(1, "batchrpc.members", signature<std::vector<Member>>()));
  stranger.send(call_frame({.number = 1, .id = 2}, std::int32_t{0}));
  const auto refused = stranger.frame(FrameKind::error);
  REQUIRE(refused);
  CHECK(wire::read_error(wire::parse_frame(*refused)).code ==
        static_cast<std::uint16_t>(ErrorCode::permission_denied));
  trio.all_call_each_other();
}

TEST_CASE("the root refuses a node that says too much of itself") {
  VirtualWorld world;
  const Node root = world.root();
  const auto join = [&](Member& member) {
    ++member.incarnation;
    RawPeer peer(world);
    peer.say_hello(member.name, member.incarnation);
    peer.send(define(0, "batchrpc.join", signature<JoinReply, Member, std::int32_t>()));
    peer.send(test::call_frame({.number = 0, .id = 1}, member, std::int32_t{0}));
    const auto error = peer.frame(FrameKind::error);
    return error ? wire::read_error(wire::parse_frame(*error)).message : std::string();
  };
  Member member{.name = "raw", .rank = -1, .incarnation = 3};
  member.addresses.assign(kMaxAddresses + 1, "tcp://10.0.0.1:1");
  CHECK_THAT(join(member), Contains("17 addresses; the limit is 16"));
  member.addresses = {std::string(kMaxAddressBytes + 1, 'a')};
  CHECK_THAT(join(member), Contains("257 bytes; the limit is 256"));
  member.addresses.clear();
  member.rank = kMaxWorldSize;
  CHECK_THAT(join(member), Contains("rank 1048576"));
  member.rank = -1;
  member.host.assign(kMaxHostBytes + 1, 'h');
  CHECK_THAT(join(member), Contains("257 bytes; the limit is 256"));
  CHECK(root.peers().empty());
}

TEST_CASE("the reason of a goodbye is cut after 1 KiB") {
  const auto words = wire::goodbye_frame({.code = 1, .reason = std::string(5000, 'x')});
  CHECK(wire::read_goodbye(wire::parse_frame(words)).reason.size() == wire::kMaxReason);
}

}  // namespace identity_test
}  // namespace batchrpc
