#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/diagnostics_world.hpp"
#include "node/raw_target.hpp"
#include "session/connection_log.hpp"
#include "wire/frame.hpp"

// What a node reports of its peers: its stats, and lines of the log.

namespace batchrpc {
namespace peer_diagnostics_test {

using namespace std::chrono_literals;
using Catch::Contains;
using test::DiagnosticsWorld;
using test::Failure;
using Lines = std::vector<std::string>;

// --- stats

TEST_CASE("a peer's round-trip time is measured by its pings") {
  DiagnosticsWorld w({.latency = 15ms});
  CHECK(w.peer(w.a, "b").round_trip == 0s);
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  CHECK(w.peer(w.a, "b").round_trip == 0s);  // not yet
  w.run_for(3s);
  CHECK(w.peer(w.a, "b").round_trip == 30ms);
  CHECK(w.peer(w.b, "a").round_trip == 30ms);
}

TEST_CASE("a round-trip time is smoothed, and kept when the peer is lost") {
  DiagnosticsWorld w({.latency = 10ms, .jitter = 10ms});
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  w.run_for(200s);
  const Duration measured = w.peer(w.a, "b").round_trip;
  CHECK(measured > 25ms);  // 30 ms on average
  CHECK(measured < 35ms);
  w.world.kill("b");
  w.run_for(10s);
  CHECK(w.peer(w.a, "b").state == PeerState::lost);
  CHECK(w.peer(w.a, "b").round_trip >= 20ms);
}

TEST_CASE("a pong has the id of its ping, and one of nobody's ping measures nothing") {
  test::RawTarget target;
  test::RawPeer peer(target.world);
  peer.say_hello();
  CHECK(peer.frame(wire::FrameKind::hello));
  peer.send(wire::plain_frame({.kind = wire::FrameKind::ping, .id = 77}));
  const auto pong = peer.frame(wire::FrameKind::pong);
  REQUIRE(pong);
  CHECK(wire::parse_frame(*pong).header.id == 77);
  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{5}, ~std::uint64_t{0}}) {
    peer.send(wire::plain_frame({.kind = wire::FrameKind::pong, .id = id}));
  }
  CHECK_FALSE(peer.closed());
  target.next_call_works();
}

TEST_CASE("bytes are counted on both sides, payloads and all, also of peers that are gone") {
  DiagnosticsWorld w;
  w.b.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  CHECK(w.peer(w.a, "b").bytes_sent == 0);
  const auto call = [&] {
    return w.a.call<std::size_t(Bytes)>("b", "size", Bytes::allocate(1'000'000)).get();
  };
  CHECK(call() == 1'000'000);
  const PeerInfo once = w.peer(w.a, "b");
  CHECK(once.bytes_sent > 1'000'000);
  CHECK(once.bytes_sent < 1'002'000);
  CHECK(once.bytes_received > 100);
  CHECK(once.bytes_received < 2'000);
  CHECK(w.peer(w.b, "a").bytes_received == once.bytes_sent);
  CHECK(w.peer(w.b, "a").bytes_sent == once.bytes_received);
  CHECK(call() == 1'000'000);
  CHECK(w.peer(w.a, "b").bytes_sent > 2'000'000);
  w.world.kill("b");
  w.run_for(1s);
  CHECK(w.peer(w.a, "b").state == PeerState::lost);
  CHECK(w.peer(w.a, "b").bytes_sent > 2'000'000);
}

// --- lines

TEST_CASE("the log of a connection that was cut and goes on") {
  DiagnosticsWorld w({.latency = 10ms, .break_after = 6000});
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  w.world.network->set_link("a", "b", {.latency = 10ms});  // the next connection holds
  (void)w.reported.take();
  const std::string text(10'000, 'x');
  CHECK(w.a.call<std::size_t(std::string)>("b", "length", text).get() == text.size());
  const Lines lines = w.reported.take();
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0],
             Contains("info: a: the connection to b broke (") && Contains("): reconnecting"));
  CHECK(lines[1] == "info: a: reconnected to b after 40 ms: its calls continue, 1 frame is resent");
  CHECK(w.peer(w.a, "b").reconnects == 1);
  CHECK_THAT(w.peer(w.a, "b").last_error, !Contains("refuse"));
}

TEST_CASE(
    "the log of a connection that breaks again and again leaves lines out, and says how many") {
  DiagnosticsWorld w;
  int cuts = 0;
  const auto cut = [&] {
    CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
    w.world.network->cut("a", "b");
    ++cuts;
    w.run_for(50ms);
  };
  (void)w.reported.take();
  for (int i = 0; i < 100; ++i)
    cut();
  const std::size_t at_once = w.reported.take().size();
  INFO(at_once << " lines of " << cuts << " cuts");
  CHECK(at_once >= 20);
  CHECK(at_once <= 21);
  w.run_for(1min);
  cut();
  CHECK_THAT(w.reported.take().at(0), Contains("similar lines were suppressed before)"));
}

TEST_CASE("the log of a peer that is silent, and is connected to again") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  w.run_for(10s);
  (void)w.reported.take();
  w.world.network->partition("a", "b");
  w.run_for(3500ms);
  w.world.network->heal("a", "b");
  w.run_for(2s);
  const Lines lines = w.reported.take();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "info: a: b has been silent for 2 s");
  CHECK(lines[1] == "info: a: the connection to b broke (it is silent): reconnecting");
  CHECK_THAT(lines[2], Contains("info: a: reconnected to b after"));
}

TEST_CASE("the log of a peer that is lost says why, and what became of its calls") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(w.a.call<int()>("b", "never"));
  w.run_for(10s);
  (void)w.reported.take();
  w.world.network->isolate("b");
  w.run_for(20s);
  CHECK(w.reported.take() ==
        Lines{"info: a: b has been silent for 2 s",
              "info: a: the connection to b broke (it is silent): reconnecting",
              "warning: a: b is lost (it was silent for 5 s): 3 calls end as PeerLost"});
  w.world.network->rejoin("b");
  w.run_for(1s);
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  const Lines lines = w.reported.take();  // the root may tell of it before it is called
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.back() == "info: a: b has joined");
}

TEST_CASE("the log of a process that was killed, and of the one that took its place") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(1s);
  (void)w.reported.take();
  w.world.kill("b");
  w.run_for(1s);
  Lines lines = w.reported.take();
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Contains("info: a: the connection to b broke ("));
  CHECK(lines[1] ==
        "warning: a: b is lost (its address refuses connections): 1 call ends as PeerLost");
  { const Node former = std::move(w.b); }
  w.world.network->rejoin("b");
  const Node again = w.world.join("b");
  w.run_for(1s);
  CHECK(w.reported.take() == Lines{"info: a: b has joined"});
}

TEST_CASE("a peer that says goodbye is no warning") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  (void)w.reported.take();
  w.b.shutdown(0s);
  w.run_for(1s);
  CHECK(w.reported.take() == Lines{"info: a: b is lost (node b has shut down)"});
}

TEST_CASE("the log of a session that the peer has forgotten says what became of its calls") {
  DiagnosticsWorld w({}, 1s);
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(500ms);
  (void)w.reported.take();
  w.world.network->partition("a", "b");
  w.run_for(3s);
  w.world.network->heal("a", "b");
  w.run_for(2s);
  std::string lines;
  for (const std::string& line : w.reported.take())
    lines += line + '\n';
  CHECK_THAT(lines,
             Contains("warning: a: a session with b has ended (the connection broke): 1 call "
                      "ends as Unknown"));
}

TEST_CASE("the log of a connection that is refused") {
  test::RawTarget target(LogLevel::info);
  test::RawPeer peer(target.world);
  peer.send(wire::hello_frame({.name = "stranger", .job = "another"}));
  CHECK(peer.closed());
  CHECK(target.world.log.contain("root: refused "));
  CHECK(target.world.log.contain("the job of stranger is 'another'"));
}

// --- the log of a connection

TEST_CASE("a connection's log joins failures, forgets the oldest, and never changes what it gave") {
  ConnectionLog log;
  CHECK(log.events() == nullptr);
  const TimePoint start{};
  log.add({.kind = ConnectionEvent::Kind::broke, .at = start, .why = "reset"});
  const auto before = log.events();
  for (int i = 1; i <= 3; ++i)
    log.add(
        {.kind = ConnectionEvent::Kind::failed, .at = start + i * 1s, .why = std::to_string(i)});
  REQUIRE(log.events()->size() == 2);
  CHECK(log.events()->back().count == 3);
  CHECK(log.events()->back().at == start + 3s);
  CHECK(log.events()->back().why == "3");
  CHECK(before->size() == 1);
  log.add({.kind = ConnectionEvent::Kind::silent, .at = start});
  log.end_silence();
  log.end_silence();
  CHECK(log.events()->size() == 2);
  for (int i = 0; i < 20; ++i)
    log.add({.kind = ConnectionEvent::Kind::resumed, .at = start + i * 1s});
  CHECK(log.events()->size() == 16);
  CHECK(log.events()->front().at == start + 4s);
}

// --- the log of a node

TEST_CASE("calls that were refused, and not yet told of, are told of at the node's end") {
  DiagnosticsWorld w;
  const test::ReportedLines reported;
  NodeOptions options = w.world.joining("c");
  options.limits.calls = {.accepted = 1};
  options.logging.level = LogLevel::warning;
  options.logging.sink = reported.sink();
  Node c(std::move(options));
  w.expose(c);
  const auto kept = w.a.call<int()>("c", "never");
  for (int i = 0; i < 5; ++i)
    CHECK(Failure(w.a.call<int()>("c", "never")).code() == ErrorCode::overloaded);
  const Lines first = reported.take();
  REQUIRE(first.size() == 1);
  CHECK_THAT(first.front(), Contains("1 call refused for lack of room, the latest 'never' of a: "));
  c.shutdown(0s);
  const Lines last = reported.take();
  REQUIRE(last.size() == 2);
  CHECK_THAT(last.front(), Contains("1 call from a, not yet answered"));
  CHECK(last.back() ==
        "warning: c: 4 calls refused for lack of room since the last such line, until the node "
        "ended");
}

}  // namespace peer_diagnostics_test
}  // namespace batchrpc
