#include "batchrpc/profile/profiler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "batchrpc/call/call_recording.hpp"
#include "batchrpc/profile.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "profile/profiled_pair.hpp"
#include "recording/call_store.hpp"

namespace batchrpc {
namespace profiler_reach_test {

using namespace std::chrono_literals;

using Pair = test::ProfiledPair;
using detail::CallRecording;
using test::phases_of;

// What a profiler reaches: samples, bounds, what its node answers, other nodes.

TEST_CASE("one in n calls is recorded where that is asked for") {
  Pair pair;
  const Profiler all(*pair.a);
  const Profiler few(*pair.a, {.sample = 4});
  pair.b->expose("other", [] { return 0; });
  for (int i = 0; i < 500; ++i) {
    pair.a->call<int(int)>("b", "slow", 0).get();
    pair.a->call<int()>("b", "other").get();
  }
  CHECK(all.recording().calls.size() == 1000);
  const Recording sampled = few.recording();
  CHECK(sampled.sampled == 4);
  // By chance, so that calls in turn are all seen.
  const auto slow = std::count_if(sampled.calls.begin(), sampled.calls.end(),
                                  [](const CallRecord& call) { return call.function == "slow"; });
  const auto other = static_cast<std::ptrdiff_t>(sampled.calls.size()) - slow;
  CHECK(slow > 80);
  CHECK(slow < 170);
  CHECK(other > 80);
  CHECK(other < 170);
  CHECK_THROWS_AS(Profiler(*pair.a, {.sample = 0}), InvalidArgument);
}

TEST_CASE("calls that a node answers are recorded where that is asked for") {
  Pair pair;
  const Profiler of_b(*pair.b, {.answered = true});
  const Profiler made_only(*pair.b);
  pair.a->call<int(int)>("b", "slow", 7).get();
  pair.a->peer("b").notify<int(int)>("slow", 1);
  pair.world.run_for(10ms);
  CHECK_FALSE(test::outcome(pair.a->call<int(int)>("b", "bad", 1)));
  auto dropped = pair.a->call<int(int)>("b", "later", 50);
  pair.world.run_for(10ms);
  dropped.cancel();
  CHECK_FALSE(test::outcome(std::move(dropped)));
  pair.world.run_for(100ms);
  const Recording recording = of_b.recording();
  REQUIRE(recording.calls.size() == 4);
  CHECK(made_only.recording().calls.empty());
  const CallRecord& first = recording.calls[0];
  CHECK(first.function == "slow");
  CHECK(first.caller.node == "a");
  CHECK(first.callee.node == "b");
  CHECK(first.callee.rank == 1);
  CHECK(first.finished - first.received == 7ms);
  CHECK(first.called == TimePoint());
  CHECK(first.span.valid());
  CHECK(first.parent == 0);
  CHECK(recording.calls[0].error.empty());
  CHECK(recording.calls[2].error == "std::out_of_range");
  CHECK(recording.calls[3].error == "Cancelled");
  const CallPhases phases = CallPhases::of(first);
  CHECK(phases.handler == 7ms);
  CHECK(phases.total() == 7ms);
  const auto trace = nlohmann::json::parse(chrome_trace(recording));
  std::vector<std::string> errors;  // as the status page's trace shows them
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == "handler")
      errors.push_back(event.at("args").value("error", ""));
  }
  std::sort(errors.begin(), errors.end());
  CHECK(errors == std::vector<std::string>{"", "", "Cancelled", "std::out_of_range"});
}

TEST_CASE("an answered call has the bytes of its reply, as its caller has them") {
  Pair pair;
  pair.b->expose("long", [](std::size_t count) { return std::vector<double>(count); });
  const Profiler of_b(*pair.b, {.answered = true});
  const auto call_all = [&] {
    pair.a->call<std::vector<double>(std::size_t)>("b", "long", 100).get();
    pair.a->call<std::vector<double>(std::size_t)>("b", "long", 10'000).get();
    CHECK_FALSE(test::outcome(pair.a->call<int(int)>("b", "bad", 1)));
    CHECK_FALSE(test::outcome(pair.a->call<int(int)>("b", "absent", 1)));
  };
  call_all();
  pair.a->peer("b").notify<int(int)>("slow", 1);
  pair.world.run_for(10ms);
  const auto alone = of_b.recording().calls;  // nobody else has them recorded
  REQUIRE(alone.size() == 5);
  CHECK(alone[0].bytes_in >= 800);
  CHECK(alone[0].bytes_in < 1000);
  CHECK(alone[1].bytes_in >= 80'000);
  CHECK(alone[1].bytes_in < 80'400);
  CHECK(alone[2].bytes_in > 0);
  CHECK(alone[3].bytes_in > 0);
  CHECK(alone[4].bytes_in == 0);  // a notification
  const Profiler of_a(*pair.a);
  call_all();
  const auto answered = of_b.recording().calls;
  const auto made = of_a.recording().calls;
  REQUIRE(answered.size() == 9);
  REQUIRE(made.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(answered[5 + i].bytes_in == made[i].bytes_in);
    CHECK(answered[5 + i].bytes_out == made[i].bytes_out);
    CHECK(answered[5 + i].bytes_in > alone[i].bytes_in);  // with the record
  }
}

TEST_CASE("an answered call whose result could not be sent after all has failed") {
  const Pair pair;
  const auto store = std::make_shared<CallStore>(10, true);
  CallRecording recording(pair.world.loop, true);
  recording.show(store, {.function = "large"}, true);
  CHECK(recording.finish().finished != TimePoint());
  CHECK(recording.finish("InvalidArgument").finished == TimePoint());
  CHECK(store->size() == 0);  // nothing has been sent
  recording.report_own(24);
  recording.finish("Cancelled");
  recording.report_own(0);
  REQUIRE(store->size() == 1);
  CHECK(store->copy()[0].function == "large");
  CHECK(store->copy()[0].error == "InvalidArgument");
  CHECK(store->copy()[0].bytes_in == 24);
}

// Every operator of these, with those of the calls that they caused.
std::size_t operators_of(const std::vector<CallRecord>& calls) {
  std::size_t count = 0;
  for (const CallRecord& call : calls)
    count += call.operators.size() + operators_of(call.calls);
  return count;
}

TEST_CASE("a profiler that wants no operators has none, whoever else wants them") {
  Pair pair;
  // As a function of LibTorch's does.
  const auto run_operator = [] {
    const detail::Ambient* const work = detail::Ambient::current();
    if (work == nullptr) return;
    if (detail::OperatorSink* const sink = work->operators())
      sink->add(OperatorRecord{.name = "aten::add", .begin = sink->now(), .end = sink->now()});
  };
  const Node c = pair.world.join("c");
  c.expose("leaf", run_operator);
  pair.b->expose("middle", [&] {
    run_operator();
    return pair.b->call<void()>("c", "leaf");
  });
  const Profiler without(*pair.a, {.operators = false});
  SECTION("on the callee") {
    const Profiler of_b(*pair.b, {.answered = true});
    pair.a->call<void()>("b", "middle").get();
    CHECK(operators_of(of_b.recording().calls) == 2);
  }
  SECTION("on the same node") {
    const Profiler with(*pair.a);
    pair.a->call<void()>("b", "middle").get();
    CHECK(operators_of(with.recording().calls) == 2);
  }
  SECTION("on the callee, which wants none of what the caller is told") {
    const Profiler with(*pair.a);
    const Profiler of_b(*pair.b, {.operators = false, .answered = true});
    pair.a->call<void()>("b", "middle").get();
    CHECK(operators_of(with.recording().calls) == 2);
    CHECK(operators_of(of_b.recording().calls) == 0);
  }
  const Recording recording = without.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(recording.calls[0].calls.size() == 1);
  CHECK(operators_of(recording.calls) == 0);
  CHECK(recording.left_out == 0);
}

TEST_CASE("a reply brings no operators to a caller that wants none") {
  Pair pair;
  pair.b->expose("runs", [] {
    if (detail::OperatorSink* const sink = detail::Ambient::current()->operators()) {
      for (int i = 0; i < 100; ++i)
        sink->add(OperatorRecord{.name = "aten::add"});
    }
  });
  const Profiler without(*pair.a, {.operators = false});
  pair.a->call<void()>("b", "runs").get();
  const Profiler of_b(*pair.b, {.answered = true});
  pair.a->call<void()>("b", "runs").get();
  CHECK(operators_of(of_b.recording().calls) == 100);
  const auto calls = without.recording().calls;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].bytes_in == calls[1].bytes_in);

  pair.b->expose("runs many", [] {
    if (detail::OperatorSink* const sink = detail::Ambient::current()->operators()) {
      for (int i = 0; i < 5000; ++i)
        sink->add(OperatorRecord{.name = "aten::add"});
    }
  });
  pair.a->call<void()>("b", "runs many").get();
  CHECK(of_b.recording().calls.back().left_out == 5000 - detail::CallRecording::kMaxEvents);
  CHECK(without.recording().calls.back().left_out == 0);
}

TEST_CASE("calls of one trace that their callee alone records are told apart, below what gave it") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [] {});
  pair.b->expose("middle", [&] { return pair.b->call<void()>("c", "leaf"); });
  const Profiler of_b(*pair.b, {.answered = true});
  const auto parent =
      TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").value();
  for (int i = 0; i < 2; ++i)
    pair.a->peer("b").with({.trace = parent}).call<void()>("middle").get();
  std::set<std::uint64_t> spans;
  for (const CallRecord& call : of_b.recording().calls) {
    spans.insert(call.span.span_number());
    CHECK(call.span.trace_id == parent.trace_id);
    if (call.function != "middle") continue;
    CHECK(call.parent == parent.span_number());
    CHECK(call.parent_is_external);
    REQUIRE(call.calls.size() == 1);
    CHECK(call.calls[0].parent == call.span.span_number());
    CHECK_FALSE(call.calls[0].parent_is_external);
  }
  CHECK(spans.size() == 2);
}

TEST_CASE("a call that both sides record is told to its caller, and is one after gathering") {
  Pair pair;
  Profiler profiler(*pair.a);
  const Profiler of_b(*pair.b, {.answered = true});
  pair.a->call<int(int)>("b", "slow", 7).get();
  CHECK(phases_of(profiler.recording().calls.at(0)).handler == 7ms);
  CHECK(of_b.recording().calls.size() == 1);
  CHECK(profiler.gather().empty());
  CHECK(profiler.recording().calls.size() == 1);
  CHECK(profiler.recording().calls[0].called != TimePoint());
}

TEST_CASE("a profiler may outlive its node") {
  Pair pair;
  auto profiler = std::make_unique<Profiler>(*pair.a);
  pair.a->call<int(int)>("b", "slow", 1).get();
  pair.a.reset();
  CHECK(profiler->recording().calls.size() == 1);
  CHECK_FALSE(profiler->key_averages().table().empty());
  CHECK_THROWS_AS(profiler->gather(), ShutDown);
  profiler->stop();
  profiler.reset();
}

TEST_CASE("gathering takes in what the other nodes' profilers have, each call once") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [] {});
  pair.b->expose("middle", [&] { return pair.b->call<void()>("c", "leaf"); });
  Profiler profiler(*pair.a);
  const Profiler of_b(*pair.b);
  pair.a->call<void()>("b", "middle").get();
  pair.b->call<void()>("c", "leaf").get();  // of its own
  CHECK(profiler.recording().calls.size() == 1);
  CHECK(profiler.gather().empty());
  Recording recording = profiler.recording();
  CHECK(recording.calls.size() == 2);
  CHECK(profiler.gather().empty());  // nothing new
  recording = profiler.recording();
  CHECK(recording.calls.size() == 2);
  pair.world.network->isolate("c");  // silent, and not known to be
  const auto missing = profiler.gather(1s);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0] == "c: it did not send all of its records within the timeout of gather()");
  CHECK_THROWS_AS(profiler.gather(0s), InvalidArgument);
  pair.a->shutdown(1s);
  CHECK_THROWS_AS(profiler.gather(), ShutDown);
}

TEST_CASE("gathering goes page by page through all profilers of a node") {
  Pair pair;
  pair.a->expose("empty", [] {});
  const Profiler one(*pair.b);
  const Profiler none(*pair.b, {.max_events = 0});
  const Profiler two(*pair.b);
  constexpr int kCalls = 12'000;
  for (int i = 0; i < kCalls; i += 100) {
    std::vector<Future<void>> calls;
    for (int j = 0; j < 100; ++j)
      calls.push_back(pair.b->call<void()>("a", "empty"));
    when_all(std::move(calls)).get();
  }
  Profiler profiler(*pair.a);
  CHECK(profiler.gather().empty());
  CHECK(profiler.recording().calls.size() == kCalls);
  CHECK(profiler.recording().left_out == kCalls);
}

TEST_CASE("clocks are aligned by what gathering itself tells, where no call does") {
  Pair pair;
  Profiler profiler(*pair.a);
  CHECK(profiler.gather().empty());
  const ClockAlignment alignment(profiler.recording());
  const ClockOffset* const b = alignment.find("b");
  REQUIRE(b != nullptr);
  CHECK(b->known);
  CHECK(b->offset == 0ms);
  CHECK(b->error == 1ms);
}

}  // namespace profiler_reach_test
}  // namespace batchrpc
