#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/calling_pair.hpp"
#include "node/metrics_of.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc {
namespace metrics_test {

using namespace std::chrono_literals;
using test::adds_up;
using test::answered_of;
using test::CallingPair;
using test::made_of;
using test::outcome;
using test::peer_of;
using test::VirtualWorld;

Future<int> later(const std::shared_ptr<VirtualLoop>& loop, Duration time) {
  auto promise = std::make_shared<Promise<int>>();
  auto future = promise->get_future();
  loop->schedule(loop->now() + time, [promise] { promise->set_value(1); });
  return future;
}

TEST_CASE("calls that were answered are counted by caller and callee, with their bytes") {
  const CallingPair pair;
  for (int i = 0; i < 5; ++i)
    pair.next_call_works();
  const NodeMetrics a = pair.a.metrics();
  const NodeMetrics b = pair.b.metrics();
  const std::string name = "failures::area";
  REQUIRE(made_of(a, name) != nullptr);
  REQUIRE(answered_of(b, name) != nullptr);
  const CallMetrics& made = *made_of(a, name);
  const CallMetrics& answered = *answered_of(b, name);
  CHECK(made.calls == 5);
  CHECK(made.ok == 5);
  CHECK(made.in_flight == 0);
  CHECK(answered.calls == 5);
  CHECK(answered.ok == 5);
  CHECK(made.bytes_sent > 0);
  CHECK(made.bytes_sent == answered.bytes_received);
  CHECK(made.bytes_received == answered.bytes_sent);
  CHECK(peer_of(a, "b").made.calls >= 5);
  CHECK(peer_of(a, "b").state == "connected");
  CHECK(a.name == "a");
  CHECK(adds_up(a.made));
  CHECK(adds_up(b.answered));
}

TEST_CASE("bytes that travel beside a call are counted as its") {
  CallingPair pair;
  pair.b.expose("echo", [](const Bytes& bytes) { return Bytes::copy(bytes.span()); });
  for (const std::size_t size : {std::size_t{100}, std::size_t{3} << 20}) {
    const CallMetrics before = pair.a.metrics().made;
    const std::vector<std::byte> bytes(size);
    REQUIRE(pair.a.call<Bytes(Bytes)>("b", "echo", Bytes::copy(bytes)).get().size() == size);
    const NodeMetrics a = pair.a.metrics();
    const NodeMetrics b = pair.b.metrics();
    CHECK(a.made.bytes_sent - before.bytes_sent >= size);
    CHECK(a.made.bytes_sent - before.bytes_sent < size + 300);
    CHECK(a.made.bytes_received - before.bytes_received >= size);
    CHECK(made_of(a, "echo")->bytes_sent == answered_of(b, "echo")->bytes_received);
    CHECK(made_of(a, "echo")->bytes_received == answered_of(b, "echo")->bytes_sent);
  }
}

TEST_CASE("what metrics say of a peer is what Node::peers() says") {
  CallingPair pair;
  pair.next_call_works();
  pair.world.run_for(3s);
  pair.world.network->cut("a", "b");
  pair.world.run_for(1s);
  pair.next_call_works();
  for (const Node* node : {&pair.a, &pair.b}) {
    const NodeMetrics metrics = node->metrics();
    for (const PeerInfo& info : node->peers()) {
      const PeerMetrics peer = peer_of(metrics, info.name);
      CHECK(peer.rank == info.rank);
      CHECK(peer.bytes_sent == info.bytes_sent);
      CHECK(peer.bytes_received == info.bytes_received);
      CHECK(peer.reconnects == info.reconnects);
      CHECK(peer.reconnects == 1);
      CHECK(peer.round_trip == info.round_trip);
    }
  }
}

TEST_CASE("latencies are those of the network and of the handler, within the width of a bucket") {
  VirtualWorld world;
  world.network->set_link({.latency = 3ms});
  const Node a = world.root("a");
  const Node b = world.join("b");
  const auto loop = world.loop;
  b.expose("later", [loop](int milliseconds) {
    return later(loop, std::chrono::milliseconds(milliseconds));
  });
  const auto within = [](std::uint64_t measured, Duration is) {
    const auto expected = static_cast<double>(is.count());
    return static_cast<double>(measured) == Approx(expected).epsilon(0.016);
  };
  CHECK(a.call<int(int)>("b", "later", 0).get() == 1);  // connects
  const Histogram first = made_of(a.metrics(), "later")->latency;
  for (int i = 0; i < 9; ++i)
    CHECK(a.call<int(int)>("b", "later", 20).get() == 1);
  const NodeMetrics of_caller = a.metrics();
  const NodeMetrics of_callee = b.metrics();
  CHECK(within(made_of(of_caller, "later")->latency.quantile(0.9), 26ms));
  CHECK(made_of(of_caller, "later")->latency.sum() - first.sum() == 9 * 26'000'000ULL);
  CHECK(within(peer_of(of_caller, "b").functions.front().made.latency.quantile(0.9), 26ms));
  CHECK(within(answered_of(of_callee, "later")->latency.quantile(0.9), 20ms));
  CHECK(answered_of(of_callee, "later")->latency.sum() == 9 * 20'000'000ULL);
}

TEST_CASE("calls under way are in flight on both sides, and pending") {
  CallingPair pair;
  const auto loop = pair.world.loop;
  pair.b.expose("later", [loop] { return later(loop, 100ms); });
  std::vector<Future<int>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(pair.a.call<int()>("b", "later"));
  pair.world.run_for(50ms);
  const NodeMetrics a = pair.a.metrics();
  const NodeMetrics b = pair.b.metrics();
  CHECK(made_of(a, "later")->in_flight == 3);
  CHECK(answered_of(b, "later")->in_flight == 3);
  CHECK(a.pending == 3);
  CHECK(peer_of(a, "b").pending == 3);
  CHECK(b.answering == 3);
  CHECK(peer_of(b, "a").answering == 3);
  pair.world.run_for(100ms);
  CHECK(made_of(pair.a.metrics(), "later")->in_flight == 0);
  CHECK(answered_of(pair.b.metrics(), "later")->in_flight == 0);
  CHECK(pair.a.metrics().pending == 0);
}

TEST_CASE("each way in which a call fails is counted under its code, once on each side") {
  CallingPair pair;
  const auto loop = pair.world.loop;
  pair.b.expose("throws", []() -> int { throw std::runtime_error("a bad day"); });
  pair.b.expose("never", [] { return Promise<int>().get_future(); });
  pair.b.expose("late", [loop] { return later(loop, 10s); });
  const auto errors_of = [](const Node& node, const std::string& function, ErrorCode code) {
    const NodeMetrics metrics = node.metrics();
    const auto* const made = made_of(metrics, function);
    return made != nullptr && made->errors.total() == 1 ? made->errors.of(code) : 0;
  };
  const auto answers_of = [](const Node& node, const std::string& function, ErrorCode code) {
    const NodeMetrics metrics = node.metrics();
    const auto* const made = answered_of(metrics, function);
    return made != nullptr && made->errors.total() == 1 ? made->errors.of(code) : 0;
  };
  CHECK(outcome(pair.a.call<int()>("b", "throws")).code() == ErrorCode::remote_error);
  CHECK(errors_of(pair.a, "throws", ErrorCode::remote_error) == 1);
  CHECK(answers_of(pair.b, "throws", ErrorCode::remote_error) == 1);

  CHECK(outcome(pair.a.call<int()>("b", "never")).code() == ErrorCode::broken_promise);
  CHECK(errors_of(pair.a, "never", ErrorCode::broken_promise) == 1);
  CHECK(answers_of(pair.b, "never", ErrorCode::broken_promise) == 1);

  CHECK(outcome(pair.a.call_with<int()>({.timeout = 100ms}, "b", "late")).code() ==
        ErrorCode::timed_out);
  CHECK(errors_of(pair.a, "late", ErrorCode::timed_out) == 1);
  pair.world.run_for(10s);
  CHECK(answers_of(pair.b, "late", ErrorCode::cancelled) == 1);  // its caller had taken it back

  CHECK(outcome(pair.a.call<int()>("b", "missing")).code() == ErrorCode::not_found);
  CHECK(errors_of(pair.a, "missing", ErrorCode::not_found) == 1);
  CHECK(answers_of(pair.b, std::string(kUnknownName), ErrorCode::not_found) == 1);

  CHECK(outcome(pair.a.call<int()>("nobody", "f")).code() == ErrorCode::not_found);
  CHECK(errors_of(pair.a, "f", ErrorCode::not_found) == 1);
  CHECK(outcome(pair.a.call<int()>(17, "g")).code() == ErrorCode::not_found);
  CHECK(errors_of(pair.a, "g", ErrorCode::not_found) == 1);
  CHECK_THROWS_AS(pair.a.notify<void()>("nobody", "told"), NotFound);
  CHECK(errors_of(pair.a, "told", ErrorCode::not_found) == 1);
  const NodeMetrics metrics = pair.a.metrics();
  const PeerMetrics unknown = peer_of(metrics, std::string(kUnknownName));
  CHECK(unknown.made.errors.of(ErrorCode::not_found) == 3);
  CHECK(unknown.state.empty());
  CHECK(unknown.rank == -1);
  CHECK(metrics.last_errors.at(metrics.last_errors.size() - 3).peer == "nobody");

  pair.b.expose("takes", [](int) {});
  CHECK(outcome(pair.a.call<void(double)>("b", "takes", 1.0)).code() == ErrorCode::bad_signature);
  CHECK(errors_of(pair.a, "takes", ErrorCode::bad_signature) == 1);
  CHECK(answers_of(pair.b, "takes", ErrorCode::bad_signature) == 1);

  CHECK(adds_up(pair.a.metrics().made));
  CHECK(adds_up(pair.b.metrics().answered));
  CHECK(pair.a.metrics().made.in_flight == 0);
  CHECK(pair.b.metrics().answered.in_flight == 0);
}

TEST_CASE("a node that was started before the root has no peer without a name") {
  VirtualWorld world;
  Future<Node> started = Node::start(world.joining("b"));
  world.run_for(5s);
  CHECK_FALSE(started.ready());
  const Node a = world.root("a");
  const Node b = std::move(started).get();
  (void)b.call<int(int)>("b", "none", 1);
  const NodeMetrics metrics = b.metrics();
  REQUIRE(metrics.peers.size() == 2);
  CHECK(metrics.peers[0].name == "a");
  CHECK(metrics.peers[1].name == "b");
  CHECK(metrics.peers[1].state == "self");
  CHECK(metrics.peers[1].rank == b.rank());
  CHECK(metrics.made.errors.total() == 0);
  CHECK_FALSE(metrics.last_errors.empty());  // that tell why it took so long
}

TEST_CASE("the bytes of an error are counted by who sends it and who gets it") {
  CallingPair pair;
  pair.b.expose("throws", [](const std::string& text) -> int { throw std::runtime_error(text); });
  pair.b.expose("hears", [](const std::string& text) { throw std::runtime_error(text); });
  (void)outcome(pair.a.call<int(std::string)>("b", "throws", "x"));
  const NodeMetrics before = pair.a.metrics();
  (void)outcome(pair.a.call<int(std::string)>("b", "throws", std::string(801, 'x')));
  const NodeMetrics a = pair.a.metrics();
  const NodeMetrics b = pair.b.metrics();
  CHECK(made_of(a, "throws")->bytes_received - made_of(before, "throws")->bytes_received ==
        made_of(before, "throws")->bytes_received + 800);
  CHECK(answered_of(b, "throws")->bytes_sent == made_of(a, "throws")->bytes_received);
  // Nothing is sent to who does not want an answer.
  pair.a.notify<void(std::string)>("b", "hears", "x");
  pair.world.run_for(1s);
  CHECK(answered_of(pair.b.metrics(), "hears")->errors.of(ErrorCode::remote_error) == 1);
  CHECK(answered_of(pair.b.metrics(), "hears")->bytes_sent == 0);
}

TEST_CASE("functions that a peer makes up take one counter of the callee's, whatever their names") {
  const CallingPair pair;
  for (int i = 0; i < 100; ++i)
    (void)outcome(pair.a.call<int()>("b", "made up " + std::to_string(i)));
  const NodeMetrics b = pair.b.metrics();
  CHECK(answered_of(b, std::string(kUnknownName))->errors.of(ErrorCode::not_found) == 100);
  CHECK(b.functions.size() < 10);
}

TEST_CASE("a call of a function that is not there counts with its bytes") {
  const CallingPair pair;
  const std::string text(1000, 'x');
  (void)outcome(pair.a.call<int(std::string)>("b", "missing", text));
  const NodeMetrics a = pair.a.metrics();
  const NodeMetrics b = pair.b.metrics();
  CHECK(made_of(a, "missing")->bytes_sent > 1000);
  CHECK(answered_of(b, std::string(kUnknownName))->bytes_received ==
        made_of(a, "missing")->bytes_sent);
}

TEST_CASE("notifications of functions that are not there do not fill the log") {
  CallingPair pair;
  for (int i = 0; i < 100; ++i)
    pair.a.notify<void()>("b", "missing");
  pair.world.run_for(10s);
  pair.a.notify<void()>("b", "missing");
  pair.world.run_for(1s);
  CHECK(pair.world.log.contain("(and 95 similar lines were"));
}

TEST_CASE("calls to a peer that dies end once: on its metrics' last word nothing is in flight") {
  CallingPair pair;
  const auto loop = pair.world.loop;
  pair.b.expose("late", [loop] { return later(loop, 60s); });
  std::vector<Future<int>> calls;
  for (int i = 0; i < 4; ++i)
    calls.push_back(pair.a.call<int()>("b", "late"));
  pair.world.run_for(1s);
  pair.world.kill("b");
  pair.world.run_for(30s);
  const NodeMetrics a = pair.a.metrics();
  CHECK(made_of(a, "late")->errors.of(ErrorCode::peer_lost) == 4);
  CHECK(a.made.in_flight == 0);
  CHECK(adds_up(a.made));
  CHECK(peer_of(a, "b").state == "lost");
  bool told = false;
  for (const ErrorRecord& error : a.last_errors)
    told = told || (error.code == ErrorCode::peer_lost && error.function == "late");
  CHECK(told);
  pair.world.run_for(60s);  // the handlers end that the world's loop would keep for ever
}

TEST_CASE("notifications are counted apart from calls by their sender") {
  CallingPair pair;
  pair.b.expose("note", [](int) {});
  for (int i = 0; i < 3; ++i)
    pair.a.notify<void(int)>("b", "note", i);
  pair.world.run_for(1s);
  const CallMetrics made = *made_of(pair.a.metrics(), "note");
  CHECK(made.calls == 0);
  CHECK(made.notifications == 3);
  const CallMetrics answered = *answered_of(pair.b.metrics(), "note");
  CHECK(answered.calls == 3);
  CHECK(answered.ok == 3);
  CHECK(answered.bytes_received == made.bytes_sent);
}

TEST_CASE("each attempt of a call is a call, and retries are counted") {
  CallingPair pair;
  auto left = std::make_shared<int>(2);
  pair.b.expose("busy", [left]() -> int {
    if ((*left)-- > 0) throw Overloaded("not now");
    return 1;
  });
  CHECK(outcome(pair.a.call_with<int()>(
                    {.retry = {.attempts = 5, .backoff = 10ms, .idempotent = true}}, "b", "busy"))
            .has_value());
  const NodeMetrics a = pair.a.metrics();
  CHECK(made_of(a, "busy")->calls == 3);
  CHECK(made_of(a, "busy")->errors.of(ErrorCode::overloaded) == 2);
  CHECK(made_of(a, "busy")->ok == 1);
  CHECK(a.retries == 2);
}

TEST_CASE("calls that came before their function was exposed are parked, and then counted as its") {
  VirtualWorld world;
  const Node a = world.root("a");
  NodeOptions options = world.joining("b");
  options.expose_within = 10s;
  const Node b(std::move(options));
  const auto call = a.call<int(int)>("b", "soon", 1);
  world.run_for(1s);
  CHECK(b.metrics().parked == 1);
  b.expose("soon", [](int x) { return x; });
  world.run_for(1s);
  CHECK(call.ready());
  const NodeMetrics metrics = b.metrics();
  CHECK(metrics.parked == 0);
  CHECK(answered_of(metrics, "soon")->ok == 1);
  CHECK(answered_of(metrics, "soon")->bytes_received == made_of(a.metrics(), "soon")->bytes_sent);
  CHECK(answered_of(metrics, std::string(kUnknownName)) == nullptr);
}

TEST_CASE("metrics tell of calls that wait for their turn, and of those refused") {
  VirtualWorld world;
  NodeOptions options = world.options("server");
  options.call_limits = {.accepted = 3, .running = 1};
  const Node server(std::move(options));
  const Node client = world.join("client");
  const auto loop = world.loop;
  server.expose("late", [loop] { return later(loop, 1s); });
  std::vector<Future<int>> calls;
  for (int i = 0; i < 5; ++i)
    calls.push_back(client.call<int()>("server", "late"));
  world.run_for(100ms);
  const NodeMetrics metrics = server.metrics();
  CHECK(metrics.queue.limited);
  CHECK(metrics.queue.accepted == 3);
  CHECK(metrics.queue.running == 1);
  CHECK(metrics.queue.waiting == 2);
  CHECK(metrics.queue.refused == 2);
  CHECK(answered_of(metrics, "late")->in_flight == 3);
  CHECK(answered_of(metrics, "late")->errors.of(ErrorCode::overloaded) == 2);
  world.run_for(10s);
  CHECK(server.metrics().queue.accepted == 0);
  CHECK(answered_of(server.metrics(), "late")->ok == 3);
}

}  // namespace metrics_test
}  // namespace batchrpc
