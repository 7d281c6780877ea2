#include "batchrpc/call/explain.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "batchrpc/batchrpc.hpp"
#include "node/diagnostics_world.hpp"

// What is known of a call that has failed: the promise by which it ended, and the times. In virtual
// time, so that these are exact.

namespace batchrpc {
namespace diagnostics_test {

using namespace std::chrono_literals;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;
using test::DiagnosticsWorld;
using test::Failure;
using test::outcome;
using Kind = ConnectionEvent::Kind;

static_assert(std::is_nothrow_copy_constructible_v<Error>);
static_assert(std::is_nothrow_copy_constructible_v<RemoteError>);
static_assert(std::is_nothrow_copy_constructible_v<Overloaded>);

TEST_CASE("a call that timed out is explained by promise 3, with the times") {
  DiagnosticsWorld w({.latency = 5ms});
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  const TimePoint called = w.now();
  const Failure failed(w.a.peer("b").with({.timeout = 2s}).call<int()>("never"));
  REQUIRE(failed.code() == ErrorCode::timed_out);
  CHECK(failed.diagnostics.function == "never");
  CHECK(failed.diagnostics.peer == "b");
  CHECK(failed.diagnostics.guarantee == Guarantee::deadline);
  CHECK(failed.diagnostics.called_at == called);
  CHECK(failed.diagnostics.left);
  CHECK(failed.diagnostics.left_at == called);
  CHECK(failed.diagnostics.deadline == called + 2s);
  CHECK(failed.took() == 2s);
  CHECK(failed.text ==
        "TimedOut: the call of 'never' on b, which may have run\n"
        "     0.000 s  called, and sent at once; its timeout is 2 s\n"
        "     2.000 s  ended: 'never' on b did not answer in time; it may have run "
        "(CallOptions::timeout, NodeOptions::call_timeout)\n"
        "Promise 3, deadlines travel: no answer came before the deadline; the peer knows the "
        "deadline, and never starts the call after it.\n"
        "What to do: raise the timeout, or find out why the callee is slow; repeat only idempotent "
        "calls.");
}

TEST_CASE("a call that timed out before there was a connection says that it had not been sent") {
  DiagnosticsWorld w;
  w.world.network->partition("a", "b");
  const Failure failed(w.a.peer("b").with({.timeout = 1s}).call<int()>("never"));
  REQUIRE(failed.code() == ErrorCode::timed_out);
  CHECK(failed.diagnostics.guarantee == Guarantee::deadline);
  CHECK_FALSE(failed.diagnostics.left);
  CHECK_FALSE(failed.diagnostics.left_at);
  CHECK(failed.took() == 1s);
  CHECK_THAT(failed.text, Contains("which never ran") &&
                              Contains("     0.000 s  called; its time") &&
                              Contains("1.000 s  ended, and had not been sent"));
}

TEST_CASE("a call that had to wait for its connection says when it was sent") {
  DiagnosticsWorld w({.latency = 50ms});
  const Failure failed(w.a.peer("b").with({.timeout = 1s}).call<int()>("never"));
  REQUIRE(failed.code() == ErrorCode::timed_out);
  REQUIRE(failed.diagnostics.left_at);
  CHECK(*failed.diagnostics.left_at - failed.diagnostics.called_at ==
        200ms);  // to connect, and the hello
  CHECK(failed.time_of(Kind::connected) == Duration(200ms));
  CHECK_THAT(failed.text, Contains("0.200 s  connected\n     0.200 s  sent\n"));
}

TEST_CASE("a time-out that was over before the call is explained as well") {
  DiagnosticsWorld w;
  const Failure failed(w.a.peer("b").with({.timeout = -1s}).call<int()>("never"));
  REQUIRE(failed.code() == ErrorCode::timed_out);
  CHECK(failed.diagnostics.guarantee == Guarantee::deadline);
  CHECK(failed.diagnostics.function == "never");
  CHECK(failed.took() == 0s);
  CHECK_FALSE(failed.diagnostics.left);
}

TEST_CASE(
    "a call to a peer that fell silent is explained by promise 6: since when, and until when") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(3500ms);
  w.world.network->isolate("b");
  const Failure failed(std::move(call));
  REQUIRE(failed.code() == ErrorCode::peer_lost);
  CHECK(failed.diagnostics.guarantee == Guarantee::dead_peer);
  CHECK(failed.diagnostics.left_at == failed.diagnostics.called_at);
  const auto silent = failed.time_of(Kind::silent);
  REQUIRE(silent);
  CHECK(*silent >= 3500ms);
  CHECK(*silent <= 4500ms);  // is noticed by the next ping
  CHECK(failed.took() >= 8500ms);
  CHECK(failed.took() <= 9500ms);
  CHECK_THAT(failed.text, Contains("nothing was heard from the peer after this") &&
                              Contains("Promise 6, a dead peer is found") &&
                              Contains("silent for 5 s"));
}

TEST_CASE(
    "a call to a process that was killed says when its connection broke, and what was tried") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(1250ms);
  w.world.kill("b");
  const Failure failed(std::move(call));
  REQUIRE(failed.code() == ErrorCode::peer_lost);
  CHECK(failed.diagnostics.guarantee == Guarantee::dead_peer);
  CHECK(failed.time_of(Kind::broke) == Duration(1250ms));
  CHECK(failed.time_of(Kind::failed) == Duration(1250ms));
  CHECK(failed.took() == 1250ms);
  CHECK_THAT(
      failed.text,
      Contains("     1.250 s  the connection broke: ") &&
          Contains("     1.250 s  an attempt to connect failed: its address refuses connections") &&
          Contains("     1.250 s  ended: b is lost"));
}

TEST_CASE("a call that never had a connection counts the tries to have one") {
  DiagnosticsWorld w({.break_after = 10});  // in the hello
  const Failure failed(w.a.call<int()>("b", "never"));
  REQUIRE(failed.code() == ErrorCode::not_sent);
  CHECK(failed.diagnostics.guarantee == Guarantee::dead_peer);
  CHECK_FALSE(failed.diagnostics.left);
  CHECK(failed.took() >= 5s);
  REQUIRE(failed.diagnostics.events);
  REQUIRE(failed.diagnostics.events->size() == 1);
  CHECK(failed.diagnostics.events->front().count > 3);
  CHECK_THAT(failed.text, Contains(" attempts to connect had failed, the last one: ") &&
                              Contains("the call was not sent, and never runs") &&
                              EndsWith("wait_for_peer() waits until a lost peer is back."));
}

TEST_CASE("a call that the peer has forgotten is explained by promise 1") {
  DiagnosticsWorld w({}, 1s);  // b gives its peers up after a second of silence
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(500ms);
  w.world.network->partition("a", "b");
  w.run_for(3s);
  w.world.network->heal("a", "b");
  const Failure failed(std::move(call));
  REQUIRE(failed.code() == ErrorCode::unknown);
  CHECK(failed.diagnostics.guarantee == Guarantee::at_most_once);
  CHECK(failed.time_of(Kind::broke));
  CHECK_THAT(failed.text, Contains("Promise 1, at most once") && Contains("not sent again"));
}

TEST_CASE("calls that the end of their own node cut off are explained by promise 8") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(100ms);
  w.a.shutdown(1s);
  const Failure cut_off(std::move(call));
  REQUIRE(cut_off.code() == ErrorCode::shut_down);
  CHECK(cut_off.diagnostics.guarantee == Guarantee::shutdown);
  CHECK(cut_off.took() >= 1100ms);
  CHECK(cut_off.took() <= 1102ms);
  const Failure refused(w.a.call<int()>("b", "never"));
  REQUIRE(refused.code() == ErrorCode::shut_down);
  CHECK(refused.diagnostics.guarantee == Guarantee::shutdown);
  CHECK(refused.diagnostics.function == "never");
  CHECK_FALSE(refused.diagnostics.left);
  CHECK_THAT(refused.text, EndsWith("What to do: make a new node."));
}

TEST_CASE("a call that ran still when its callee ended is explained by promise 8") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(1s);
  w.b.shutdown(1s);
  const Failure failed(std::move(call));
  CHECK(failed.code() == ErrorCode::peer_lost);
  CHECK(failed.diagnostics.guarantee == Guarantee::shutdown);
  CHECK_THAT(failed.text,
             Contains("Promise 8, shutdown: a node was shut down while the call was in flight"));
}

TEST_CASE("a call that an ending callee refuses is explained by promise 8, and had been sent") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto kept = w.a.call<int()>("b", "never");  // b waits for its answer
  w.run_for(10ms);
  std::optional<Future<int>> call;
  w.world.loop->schedule(w.now() + 100ms, [&] { call = w.a.call<int(int)>("b", "twice", 2); });
  w.b.shutdown(1s);
  REQUIRE(call);
  const Failure failed(*std::move(call));
  REQUIRE(failed.code() == ErrorCode::shut_down);
  CHECK(failed.diagnostics.guarantee == Guarantee::shutdown);
  CHECK(failed.diagnostics.left);
  CHECK_THAT(failed.text,
             Contains("which never ran") &&
                 EndsWith("What to do: call another node, or call again after it was restarted."));
}

TEST_CASE("a call without credit is explained by promise 5, and told how to wait for it") {
  DiagnosticsWorld w;
  NodeOptions options = w.world.joining("c");
  options.limits.max_outstanding_bytes = 64 << 10;
  const Node c(std::move(options));
  w.b.expose("keep", [&w](const std::string&) { return w.never.emplace_back().get_future(); });
  const std::string much(40'000, 'x');
  const auto kept = c.call<int(std::string)>("b", "keep", much);
  const Failure failed(c.call<int(std::string)>("b", "keep", much));
  REQUIRE(failed.code() == ErrorCode::overloaded);
  CHECK(failed.diagnostics.guarantee == Guarantee::bounded_memory);
  CHECK_THAT(failed.text, Contains("Promise 5, bounded memory") &&
                              EndsWith("What to do: wait with wait_for_credit(), or raise "
                                       "NodeOptions::limits.max_outstanding_bytes."));
}

TEST_CASE("what a remote function throws is explained by the promise of its code") {
  DiagnosticsWorld w({.latency = 10ms});
  w.b.expose("throws", [] { throw std::out_of_range("index 7"); });
  w.b.expose("full", [] { throw Overloaded("no room"); });
  w.b.expose("cancelled", [] { throw Cancelled("not wanted"); });
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);

  const Failure thrown(w.a.call<void()>("b", "throws"));
  REQUIRE(thrown.code() == ErrorCode::remote_error);
  CHECK(thrown.diagnostics.guarantee == Guarantee::at_most_once);
  CHECK(thrown.took() == 20ms);
  CHECK_THAT(thrown.text, Contains("it ran once and threw") && Contains("0.020 s  ended: ") &&
                              Contains("std::out_of_range: index 7"));
  w.b.expose("without its object", [] {
    return make_failed_future<void>(std::make_exception_ptr(detail::DidNotRun{
        std::make_exception_ptr(RemoteError("x", "std::logic_error", "b", "the maker", false))}));
  });
  CHECK_THAT(Failure(w.a.call<void()>("b", "without its object")).text,
             Contains("it never ran: the code that creates its object threw"));
  const Failure full(w.a.call<void()>("b", "full"));
  REQUIRE(full.code() == ErrorCode::overloaded);
  CHECK(full.diagnostics.guarantee == Guarantee::overload);
  const Failure cancelled(w.a.call<void()>("b", "cancelled"));
  REQUIRE(cancelled.code() == ErrorCode::cancelled);
  CHECK(cancelled.diagnostics.guarantee == Guarantee::cancellation);
  const Failure missing(w.a.call<void()>("b", "missing"));
  REQUIRE(missing.code() == ErrorCode::not_found);
  CHECK(missing.diagnostics.guarantee == Guarantee::at_most_once);
  CHECK_THAT(missing.text, Contains("it never ran"));
}

TEST_CASE(
    "a call that was cancelled is explained by promise 4, with the time of its cancellation") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto call = w.a.call<int()>("b", "never");
  w.run_for(700ms);
  REQUIRE(call.cancel());
  const Failure failed(std::move(call));
  REQUIRE(failed.code() == ErrorCode::cancelled);
  CHECK(failed.diagnostics.guarantee == Guarantee::cancellation);
  CHECK(failed.diagnostics.left);
  CHECK(failed.took() == 700ms);
  CHECK_THAT(failed.text, Contains("it was cancelled, but may have run"));
}

TEST_CASE("a call of nobody is explained, though there is no connection") {
  DiagnosticsWorld w;
  const Failure failed(w.a.call<int()>("nobody", "never"));
  REQUIRE(failed.code() == ErrorCode::not_found);
  CHECK(failed.diagnostics.peer == "nobody");
  CHECK(failed.diagnostics.guarantee == Guarantee::at_most_once);
  CHECK_FALSE(failed.diagnostics.events);
  CHECK_THAT(failed.text,
             Contains("'never' on nobody, which never ran") &&
                 EndsWith("What to do: wait for the peer (wait_for_peer()), or correct its "
                          "name."));
  NodeOptions options = w.world.joining("strict");
  options.expose_within = 0s;
  const Node strict(std::move(options));
  const Failure no_function(w.a.call<int()>("strict", "never"));
  REQUIRE(no_function.code() == ErrorCode::not_found);
  CHECK_THAT(no_function.text, EndsWith("What to do: expose it, or correct the name."));
}

TEST_CASE("a call made while its connection is broken tells of the break before it") {
  DiagnosticsWorld w({.break_after = 6000});
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  auto large = w.a.call<std::size_t(std::string)>("b", "length", std::string(10'000, 'x'));
  w.world.network->partition("a", "b");  // what is connected from now on waits
  w.run_for(500ms);
  const Failure failed(w.a.peer("b").with({.timeout = 1s}).call<int()>("never"));
  REQUIRE(failed.code() == ErrorCode::timed_out);
  CHECK_FALSE(failed.diagnostics.left);
  CHECK_THAT(failed.text, Contains("    -0.500 s  the connection broke: "));
}

TEST_CASE("a time-out that is of no call is explained by waiting, not by the call's time-out") {
  const DiagnosticsWorld w;
  const Failure failed(w.a.wait_for_peer("nobody", 2s));
  REQUIRE(failed.code() == ErrorCode::timed_out);
  CHECK(failed.text ==
        "TimedOut: peer 'nobody' did not join within 2 s\n"
        "What to do: wait longer, or find out why it takes so long.");
}

TEST_CASE("a wait for a peer that is lost says why it is, and that it was not back") {
  DiagnosticsWorld w;
  CHECK(w.a.call<int(int)>("b", "twice", 1).get() == 2);
  w.world.kill("b");
  w.run_for(1s);
  const Failure killed(w.a.wait_for_peer("b", 500ms));
  REQUIRE(killed.code() == ErrorCode::timed_out);
  CHECK_THAT(killed.text, StartsWith("TimedOut: peer 'b' is lost (its address refuses connections) "
                                     "and did not come back within 500 ms\n"));

  DiagnosticsWorld ended;
  CHECK(ended.a.call<int(int)>("b", "twice", 1).get() == 2);
  ended.b.shutdown(1s);
  ended.run_for(1s);
  CHECK_THAT(Failure(ended.a.wait_for_peer("b", 2s)).text,
             Contains("peer 'b' is lost (node b has shut down) and did not come back within 2 s"));
}

TEST_CASE("a wait for credit that ends since the peer is lost says so") {
  DiagnosticsWorld w;
  w.b.expose("keep", [&w](const Bytes&) { return w.never.emplace_back().get_future(); });
  constexpr std::size_t kMost = std::size_t{1} << 30;  // NodeOptions::limits.max_outstanding_bytes
  const auto kept = w.a.call<int(Bytes)>("b", "keep", Bytes::allocate(1 << 20));
  auto waits = w.a.peer("b").wait_for_credit(kMost - (1 << 20));
  w.run_for(1s);
  w.world.kill("b");
  const Failure failed(std::move(waits));
  REQUIRE(failed.code() == ErrorCode::not_sent);
  CHECK_THAT(failed.text,
             StartsWith("NotSent: the wait for credit has ended, because b is lost (its "
                        "address refuses connections)\n"));
}

TEST_CASE("a call that is not tried again is the only attempt") {
  DiagnosticsWorld w;
  const TimePoint called = w.now();
  const Failure failed(w.a.peer("b").with({.timeout = 1s}).call<int()>("never"));
  CHECK(failed.diagnostics.attempt == 1);
  CHECK(failed.diagnostics.attempts == 1);
  CHECK(failed.diagnostics.first_called_at == called);
  CHECK_THAT(failed.text, !Contains("attempt"));
  const Failure refused(w.a.call<int()>("nobody", "never"));
  CHECK(refused.diagnostics.first_called_at == refused.diagnostics.called_at);
}

TEST_CASE("an error that is of no call, or not batchrpc's, is explained by what it says") {
  CHECK(explain(std::exception_ptr()) == "There was no error.");
  CHECK(explain(Result<int>(1)) == "There was no error.");
  CHECK(explain(std::make_exception_ptr(std::out_of_range("index 7"))) ==
        "std::out_of_range: index 7");
  const NotFound error("no such object");
  CHECK(error.diagnostics() == nullptr);
  CHECK(explain(error) ==
        "NotFound: no such object\nWhat to do: expose it, correct the name, or wait for "
        "the peer (wait_for_peer()).");
}

}  // namespace diagnostics_test
}  // namespace batchrpc
