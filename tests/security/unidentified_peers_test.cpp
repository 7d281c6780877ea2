#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "largest_allocation.hpp"
#include "node/raw_target.hpp"

// Connections of which nobody says who he is, or only does harm: what they may take, what is said
// of them, and that a node's peers notice nothing.

namespace batchrpc {
namespace unidentified_peers_test {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using Catch::Contains;
using test::call_frame;
using test::define;
using test::RawPeer;
using test::twice;
using wire::FrameKind;

using Peers = std::vector<std::unique_ptr<RawPeer>>;

/// A root with functions and one peer, which calls it all along.
struct Host {
  explicit Host(NodeOptions (*change)(NodeOptions) = [](NodeOptions same) { return same; })
      : root(with_sink(change(world.options("root")))) {
    root.expose("twice", twice);
    root.expose("text", [](std::size_t size) { return std::string(size, 'x'); });
    root.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  }

  test::VirtualWorld world;
  std::vector<std::string> warnings;
  Node root;
  Node client = world.join("client");
  int calls = 0;

  /// A call of the healthy peer's, to its end.
  void call() {
    ++calls;
    REQUIRE(client.call<int(int)>("root", "twice", calls).get() == 2 * calls);
  }
  Peers connect(int count) const {
    Peers peers;
    for (int i = 0; i < count; ++i)
      peers.push_back(std::make_unique<RawPeer>(world));
    return peers;
  }
  static int closed(const Peers& peers) {
    return static_cast<int>(
        std::count_if(peers.begin(), peers.end(), [](auto& peer) { return peer->closed(); }));
  }

 private:
  NodeOptions with_sink(NodeOptions options) {
    options.logging.level = LogLevel::warning;
    options.logging.sink = [this](LogLevel /*level*/, std::string_view line) {
      warnings.emplace_back(line);
    };
    return options;
  }
};

TEST_CASE("who does not say hello is dropped after 5 s, however patient the node is with peers") {
  Host host([](NodeOptions options) {
    options.liveness.dead_after = 60s;
    options.liveness.ping_after = 30s;
    return options;
  });
  const Peers early = host.connect(3);
  host.world.run_for(2s);
  const Peers late = host.connect(3);
  late[0]->say_hello();
  host.world.run_for(2999ms);
  CHECK(Host::closed(early) == 0);
  host.world.run_for(1ms);
  CHECK(Host::closed(early) == 3);
  CHECK(Host::closed(late) == 0);
  host.world.run_for(2s);
  CHECK(Host::closed(late) == 2);
  CHECK_FALSE(late[0]->closed());
  CHECK_THAT(host.warnings.front(), Contains("it sent no hello in time"));
}

TEST_CASE("64 connections may wait for a hello, and who had 1 s for it makes room for another") {
  Host host;
  const Peers first = host.connect(1);
  host.world.run_for(900ms);
  const Peers mute = host.connect(63);
  CHECK(host.connect(1)[0]->closed());
  host.world.run_for(101ms);
  const Peers one_more = host.connect(1);
  CHECK_FALSE(one_more[0]->closed());
  CHECK(first[0]->closed());
  CHECK(Host::closed(mute) == 0);
  CHECK(host.connect(1)[0]->closed());  // the others have not had theirs
  host.call();
}

TEST_CASE("a crowd of honest nodes that come at once beside mute connections all get in soon") {
  Host host;
  const Peers mute = host.connect(64);
  std::vector<Future<Node>> joining;
  for (int i = 0; i < 100; ++i)
    joining.push_back(Node::start(host.world.joining("node" + std::to_string(i))));
  host.world.run_for(4s);
  std::vector<Node> nodes;
  for (auto& node : joining) {
    REQUIRE(node.ready());
    nodes.push_back(std::move(node).get());
  }
  CHECK(nodes.back().call<int(int)>("root", "twice", 1).get() == 2);
}

TEST_CASE("slow-loris: peers that trickle their hello keep nobody out and take little memory") {
  Host host;
  host.call();
  const std::vector<Word> hello =
      wire::hello_frame({.incarnation = 3, .name = "loris", .job = std::string(60'000, 'x')});
  const auto bytes = std::as_bytes(std::span(hello));
  struct Loris {
    std::unique_ptr<RawPeer> peer;
    std::size_t sent = 0;
  };
  std::vector<Loris> all(64);
  const std::size_t before = test::allocated_bytes();
  std::size_t most = 0;
  Future<Node> newcomer;
  for (int step = 0; step < 300; ++step) {  // 30 s
    for (Loris& loris : all) {
      if (!loris.peer || loris.peer->closed()) {
        loris = {.peer = std::make_unique<RawPeer>(host.world)};
        if (!loris.peer->connected()) continue;
        loris.peer->send(bytes.first(30'000));
        loris.sent = 30'000;
      }
      loris.peer->send(bytes.subspan(loris.sent++, 1));
    }
    if (step == 30) newcomer = Node::start(host.world.joining("newcomer"));
    host.call();
    host.world.run_for(100ms);
    most = std::max(most, test::allocated_bytes());
    if (step == 60) CHECK(newcomer.ready());
  }
  CHECK(host.calls == 301);
  // Each has half a hello here; the in-process network keeps a few buffers besides.
  CHECK(most < before + 64 * (std::size_t{128} << 10));
  CHECK(std::move(newcomer).get().call<int(int)>("root", "twice", 4).get() == 8);
}

TEST_CASE("a flood of 10000 connections leaves a healthy peer's calls as they are") {
  Host host;
  host.call();
  const std::size_t before = test::allocated_bytes();
  for (int round = 0; round < 100; ++round) {
    const Peers flood = host.connect(100);
    for (int i = 0; i < 100; i += 10) {
      flood[static_cast<std::size_t>(i)]->send(
          std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n"sv)));
      host.call();
    }
    host.world.run_for(10ms);
  }
  host.world.run_for(10s);
  CHECK(host.calls == 1001);
  CHECK(test::allocated_bytes() < before + (std::size_t{1} << 20));
  CHECK(host.root.peers().size() == 1);
  // Of all that there are a handful of lines.
  CHECK(host.warnings.size() <= 2 * 8);
  const Node newcomer = host.world.join("newcomer");
  CHECK(newcomer.call<int(int)>("root", "twice", 4).get() == 8);
}

TEST_CASE("1000 connections that are reset while something is written leave others as they are") {
  Host host;
  host.world.network->set_link("raw", "root", {.capacity = 4096});
  host.call();
  const std::size_t before = test::allocated_bytes();
  std::mt19937_64 random(5);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const bool by_node = i % 2 == 0;  // who is writing
    if (!by_node) {
      host.world.network->set_link("raw", "root",
                                   {.capacity = 4096, .break_after = 300 + random() % 30'000});
    }
    RawPeer peer(host.world);
    peer.say_hello("raw", 2 * i + 1);
    peer.send(define(0, "text", signature<std::string, std::size_t>()));
    peer.send(define(1, "size", signature<std::size_t, Bytes>()));
    if (by_node) {  // a reply that does not fit, and nobody reads it
      peer.send(call_frame({.number = 0, .id = 1}, std::size_t{30'000}));
      host.world.network->set_link("raw", "root", {.capacity = 4096});
    } else {
      peer.send(call_frame({.number = 1, .id = 1}, Bytes::allocate(20'000)));
      auto chunk = wire::plain_frame({.kind = FrameKind::chunk, .id = 1, .value = 20'000});
      chunk.resize(chunk.size() + 20'000 / sizeof(Word));
      peer.send(std::as_bytes(std::span(chunk)).first(1 + random() % 20'000));
    }
    host.call();
  }
  host.world.run_for(10s);
  CHECK(host.calls == 1001);
  CHECK(host.root.peers().size() == 1);
  CHECK(test::allocated_bytes() < before + (std::size_t{1} << 20));
}

TEST_CASE(
    "a peer that breaks the protocol is dropped with one warning of the first bytes it sent") {
  struct Sent {
    std::string_view bytes;
    std::string_view kind;
    std::string_view shown;
  };
  const std::vector<Sent> all{
      {"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"sv, "looks like an HTTP request",
       "47 45 54 20 2f 6d 65 74 72 69 63 73"},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03..............."sv,
       "looks like a TLS handshake", "16 03 01 02 00 01 00 01 fc 03 03"},
      {"SSH-2.0-OpenSSH_9.2p1\r\n"sv, "looks like SSH", "(SSH-2.0-OpenSSH_9.2p1..)"},
      {"\xde\xad\xbe\xef\xde\xad\xbe\xef"sv, "it begins with",
       "de ad be ef de ad be ef (........)"}};
  for (const Sent& sent : all) {
    Host host;
    RawPeer peer(host.world);
    peer.send(std::as_bytes(std::span(sent.bytes)));
    CHECK(peer.closed());
    host.world.run_for(10s);
    REQUIRE(host.warnings.size() == 1);
    CHECK_THAT(host.warnings[0], Contains("not a batchrpc frame") &&
                                     Contains(std::string(sent.kind)) &&
                                     Contains(std::string(sent.shown)));
    host.call();
  }
}

TEST_CASE("after the hello it is the frame that broke the protocol of which the bytes are shown") {
  for (const bool large : {false, true}) {
    Host host;
    RawPeer peer(host.world);
    peer.say_hello();
    auto bad = wire::plain_frame({.kind = static_cast<FrameKind>(77)});
    if (large) {  // it comes into memory of its own
      bad.resize(20'000);
      bad[0] = Word{bad.size() - 1} << 32;
    }
    peer.send(bad);
    CHECK(peer.closed());
    REQUIRE(host.warnings.size() == 1);
    CHECK_THAT(host.warnings[0],
               Contains("the unknown kind 77") &&
                   Contains(large ? "00 00 00 00 1f 4e 00 00" : "00 00 00 00 09 00 00 00"));
    host.call();
  }
}

TEST_CASE("of many that break the protocol a few warnings are written, and how many were not") {
  Host host;
  for (int i = 0; i < 1000; ++i) {
    RawPeer peer(host.world);
    peer.send({~Word{0}});
  }
  CHECK(host.warnings.size() == 5);
  host.world.run_for(10s);
  RawPeer peer(host.world);
  peer.send({~Word{0}});
  REQUIRE(host.warnings.size() == 6);
  CHECK_THAT(host.warnings[5], Contains("(and 995 similar lines were suppressed before)"));
}

TEST_CASE("before its hello nobody may send more than 64 KiB, whatever it is") {
  Host host;
  RawPeer peer(host.world);
  const auto goodbye = wire::goodbye_frame({.reason = std::string(1000, 'x')});
  std::size_t sent = 0;
  for (; sent < 1000 && !peer.closed(); ++sent)
    peer.send(goodbye);
  CHECK(sent * goodbye.size() * sizeof(Word) > 64 * 1024);
  CHECK(sent * goodbye.size() * sizeof(Word) < 67 * 1024);
  host.call();
}

}  // namespace unidentified_peers_test
}  // namespace batchrpc
