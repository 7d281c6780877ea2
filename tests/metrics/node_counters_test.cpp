#include "metrics/node_counters.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/transport/virtual_loop.hpp"

namespace batchrpc {
namespace node_counters_test {

NodeMetrics report_of(const NodeCounters& counters) {
  NodeMetrics metrics;
  counters.report(metrics);
  return metrics;
}

const PeerMetrics* peer_of(const NodeMetrics& metrics, std::string_view name) {
  for (const PeerMetrics& peer : metrics.peers) {
    if (peer.name == name) return &peer;
  }
  return nullptr;
}

bool adds_up(const CallMetrics& calls) {
  return calls.calls == calls.ok + calls.errors.total() + calls.in_flight;
}

TEST_CASE("calls of a session are reported by peer and by function") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  CallsMade first(&counters);
  CallsMade second(&counters);
  counters.name(first, "a");
  counters.name(second, "b");
  for (CallsMade* session : {&first, &second}) {
    session->define("f", false);
    session->define("g", false);
    session->called(0, 10);
    session->called(0, 10);
    session->called(1, 100);
    session->answered(0, 1000, 5);
    session->failed(1, ErrorCode::timed_out);
  }
  const NodeMetrics metrics = report_of(counters);
  REQUIRE(metrics.functions.size() == 2);
  const CallMetrics& f = metrics.functions[0].made;
  CHECK(metrics.functions[0].name == "f");
  CHECK(f.calls == 4);
  CHECK(f.ok == 2);
  CHECK(f.in_flight == 2);
  CHECK(f.bytes_sent == 40);
  CHECK(f.bytes_received == 10);
  CHECK(f.latency.count() == 2);
  CHECK(f.latency.sum() == 2000);
  CHECK(metrics.functions[1].made.errors.of(ErrorCode::timed_out) == 2);
  REQUIRE(metrics.peers.size() == 2);
  CHECK(metrics.peers[0].name == "a");
  CHECK(metrics.peers[0].made.calls == 3);
  CHECK(metrics.peers[0].functions.size() == 2);
  CHECK(metrics.made.calls == 6);
  CHECK(adds_up(metrics.made));
}

TEST_CASE("what a session has counted stays when it ends, and goes on with the next") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  for (int life = 0; life < 3; ++life) {
    CallsMade session(&counters);
    counters.name(session, "peer");
    session.define("f", false);
    session.called(0, 8);
    session.called(0, 8);
    session.answered(0, 50, 8);
  }
  const NodeMetrics metrics = report_of(counters);
  REQUIRE(metrics.peers.size() == 1);
  CHECK(metrics.made.calls == 6);
  CHECK(metrics.made.ok == 3);
  CHECK(metrics.made.in_flight == 0);
  CHECK(metrics.made.errors.of(ErrorCode::broken_promise) == 3);
  CHECK(metrics.made.latency.quantile(0.5) == 50);
}

TEST_CASE("the library's own functions are counted together, and names without end are, too") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  CallsMade session(&counters);
  counters.name(session, "peer");
  std::uint32_t number = 0;
  for (; number < 10; ++number) {
    session.define("batchrpc.f" + std::to_string(number), true);
    session.notified(number, 1);
  }
  for (; number < kMaxCountedNames + 1000; ++number) {
    session.define("f" + std::to_string(number), false);
    session.called(number, 1);
  }
  const NodeMetrics metrics = report_of(counters);
  CHECK(metrics.functions.size() <= kMaxCountedNames + 2);
  CHECK(metrics.made.notifications == 10);
  CHECK(metrics.made.calls == kMaxCountedNames + 990);
  bool library = false;
  bool other = false;
  for (const FunctionMetrics& function : metrics.functions) {
    library = library || (function.name == kLibraryName && function.made.notifications == 10);
    other = other || (function.name == kOtherName && function.made.calls > 900);
  }
  CHECK(library);
  CHECK(other);
}

TEST_CASE("peers without end that come and go take bounded memory, and their sums are kept") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  CallsMade stays(&counters);
  counters.name(stays, "stays");
  stays.define("f", false);
  stays.called(0, 1);
  constexpr int kPeers = 5000;
  for (int i = 0; i < kPeers; ++i) {
    CallsMade session(&counters);
    counters.name(session, "peer" + std::to_string(i));
    session.define("f", false);
    session.called(0, 1);
    session.answered(0, 100, 1);
  }
  counters.refused("nobody", "f", NotFound("no such peer"), TimePoint(), false);
  for (int i = 0; i < kPeers; ++i)
    counters.refused("nobody" + std::to_string(i), "f", NotFound("no such peer"), TimePoint());
  const NodeMetrics metrics = report_of(counters);
  CHECK(metrics.peers.size() < 1100);
  CHECK(metrics.made.calls == 2 * kPeers + 2);
  CHECK(metrics.made.ok == kPeers);
  CHECK(metrics.made.errors.of(ErrorCode::not_found) == kPeers + 1);
  CHECK(adds_up(metrics.made));
  CHECK(peer_of(metrics, "stays") != nullptr);
  CHECK(peer_of(metrics, "nobody4999") != nullptr);
  CHECK(peer_of(metrics, "peer0") == nullptr);
  CHECK(peer_of(metrics, kOtherName) != nullptr);
  CHECK(peer_of(metrics, kUnknownName) != nullptr);
}

TEST_CASE("a function that is exposed again goes on with what it had counted") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  FunctionCounters& first = counters.function("f");
  first.began(10);
  first.answered(5, 1);
  FunctionCounters& again = counters.function("f");
  CHECK(&again == &first);
  again.began(10);
  again.failed(ErrorCode::remote_error);
  again.began(10);
  const NodeMetrics metrics = report_of(counters);
  REQUIRE(metrics.functions.size() == 1);
  const CallMetrics& answered = metrics.functions[0].answered;
  CHECK(answered.calls == 3);
  CHECK(answered.ok == 1);
  CHECK(answered.errors.of(ErrorCode::remote_error) == 1);
  CHECK(answered.in_flight == 1);
  CHECK(answered.bytes_received == 30);
  CHECK(answered.bytes_sent == 1);
  CHECK(metrics.answered.calls == 3);
}

TEST_CASE("error codes that are not known here are counted as others") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  FunctionCounters& function = counters.function("f");
  function.began(1);
  function.failed(static_cast<ErrorCode>(999));
  CHECK(report_of(counters).answered.errors.counts[0] == 1);
  CHECK(adds_up(report_of(counters).answered));
}

TEST_CASE(
    "the latest errors are remembered, in order, and their texts are cut between characters") {
  RecentErrors errors;
  for (int i = 0; i < 40; ++i) {
    errors.add({.at = TimePoint(std::chrono::seconds(i)),
                .code = ErrorCode::timed_out,
                .text = "error " + std::to_string(i)});
  }
  const auto all = errors.all(TimePoint(std::chrono::seconds(50)));
  REQUIRE(all.size() == 32);
  CHECK(all.front().text == "error 8");
  CHECK(all.back().text == "error 39");
  CHECK(all.back().ago == std::chrono::seconds(11));
  std::string text = "x";
  while (text.size() < 300)
    text += "\xc3\xa4";
  errors.add({.text = text});
  const std::string kept = errors.all(TimePoint()).back().text;
  CHECK(kept.size() == 255);
  CHECK(kept == text.substr(0, 255));
}

TEST_CASE("who counts does not wait for who looks at what was counted") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  CallsMade session(&counters);
  session.define("f", false);
  session.called(0, 1);
  int seen = 0;
  session.counts()->for_each([&](const std::string&, const CallMetrics&) {
    ++seen;
    NodeCounters::name(session, "peer");
    session.define("g", false);
    session.called(1, 1);
    const CallsMade another(&counters);
    CHECK(report_of(counters).made.calls == 2);
  });
  CHECK(seen == 1);
}

TEST_CASE("what a session has counted is counted once if it ends meanwhile") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  std::optional<CallsMade> session(&counters);
  NodeCounters::name(*session, "peer");
  session->define("f", false);
  session->called(0, 1);
  const auto counts = session->counts();
  counts->for_each([&](const std::string&, const CallMetrics& calls) {
    session.reset();
    CHECK(calls.calls == 1);
  });
  CHECK(report_of(counters).made.calls == 1);
}

TEST_CASE("a session whose peer never said who it is does not count") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  {
    CallsMade session(&counters);
    session.define("batchrpc.who", true);
    session.called(0, 1);
    CHECK(report_of(counters).peers.empty());
  }
  CHECK(report_of(counters).peers.empty());
  CHECK(report_of(counters).made.calls == 0);
}

TEST_CASE("a snapshot can be taken while sessions and functions count", "[threads]") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  std::thread calls([&] {
    for (int life = 0; life < 50; ++life) {
      CallsMade session(&counters);
      counters.name(session, "peer" + std::to_string(life % 3));
      for (std::uint32_t i = 0; i < 20; ++i) {
        session.define("f" + std::to_string(i), false);
        session.called(i, 1);
        session.answered(i, i * 1000, 1);
      }
    }
  });
  std::thread answers([&] {
    for (int i = 0; i < 10'000; ++i) {  // so many that this thread has counts of its own
      FunctionCounters& function = counters.function("g" + std::to_string(i % 5));
      function.began(1);
      function.answered(1000, 1);
    }
  });
  std::uint64_t before = 0;
  for (int i = 0; i < 50; ++i) {
    const NodeMetrics metrics = report_of(counters);
    CHECK(adds_up(metrics.made));
    CHECK(adds_up(metrics.answered));
    CHECK(metrics.made.ok >= before);
    before = metrics.made.ok;
  }
  calls.join();
  answers.join();
  CHECK(report_of(counters).made.ok == 1000);
  CHECK(report_of(counters).answered.ok == 10'000);
}

TEST_CASE("what many threads count of a function is all there, wherever a call began",
          "[threads]") {
  const auto loop = std::make_shared<VirtualLoop>();
  NodeCounters counters(*loop);
  FunctionCounters& function = counters.function("f");
  const auto threads = GENERATE(1, 4, 40);  // one, some, and more than count for themselves
  constexpr int kCalls = 3000;
  for (int i = 0; i < threads * kCalls; ++i)
    function.began(2);  // as a loop's thread does: workers end them
  std::atomic<bool> done = false;
  bool all_adds_up = true;
  std::thread looks([&] {
    while (!done) {
      const CallMetrics calls = function.snapshot();
      if (!adds_up(calls) || calls.calls != static_cast<std::uint64_t>(threads * kCalls))
        all_adds_up = false;
    }
  });
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        if (call % 10 == 0) {
          function.failed(ErrorCode::remote_error, 1);
        } else {
          function.answered(1000 + static_cast<std::uint64_t>(call), 3);
        }
      }
    });
  }
  for (std::thread& worker : workers)
    worker.join();
  done = true;
  looks.join();
  CHECK(all_adds_up);
  const CallMetrics calls = function.snapshot();
  const auto each = static_cast<std::uint64_t>(threads);
  CHECK(calls.calls == each * 3000);
  CHECK(calls.ok == each * 2700);
  CHECK(calls.errors.of(ErrorCode::remote_error) == each * 300);
  CHECK(calls.in_flight == 0);
  CHECK(calls.bytes_received == each * 6000);
  CHECK(calls.bytes_sent == each * (3 * 2700 + 300));
  CHECK(calls.latency.count() == each * 2700);
}

}  // namespace node_counters_test
}  // namespace batchrpc
