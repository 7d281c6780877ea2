#include "batchrpc/profile/profiler.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "batchrpc/call/call_recording.hpp"
#include "batchrpc/profile.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "profile/profiled_pair.hpp"

namespace batchrpc {
namespace profiler_test {

using namespace std::chrono_literals;

using Pair = test::ProfiledPair;
using detail::CallRecording;
using test::phases_of;

TEST_CASE("a call is recorded with the times of both sides") {
  Pair pair;
  Profiler profiler(*pair.a);
  const TimePoint called = pair.world.loop->now();
  CHECK(pair.a->call<int(int)>("b", "slow", 7).get() == 7);
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  const CallRecord& call = recording.calls[0];
  CHECK(call.function == "slow");
  CHECK(call.caller.node == "a");
  CHECK(call.caller.rank == 0);
  CHECK(call.callee.node == "b");
  CHECK(call.callee.rank == 1);
  CHECK(call.caller.process == static_cast<std::uint64_t>(::getpid()));
  CHECK(call.callee.process == call.caller.process);
  CHECK(call.callee.thread != 0);
  CHECK(call.span.valid());
  CHECK(call.parent == 0);
  CHECK(call.called == called);
  CHECK(call.sent == called);
  CHECK(call.received == called + 1ms);
  CHECK(call.begun == call.received);
  CHECK(call.finished == called + 8ms);
  CHECK(call.replied == called + 9ms);
  CHECK(call.ended == called + 9ms);
  CHECK(call.error.empty());
  CHECK(call.bytes_out > 0);
  CHECK(call.bytes_in > 0);
  CHECK(call.left_out == 0);
  const CallPhases phases = phases_of(call);
  CHECK(phases.wire == 1ms);
  CHECK(phases.handler == 7ms);
  CHECK(phases.reply == 1ms);
  CHECK(phases.total() == 9ms);
}

TEST_CASE("nothing is recorded before a profiler begins, and after it has stopped") {
  Pair pair;
  Profiler profiler(*pair.a);
  pair.a->call<int(int)>("b", "slow", 1).get();
  auto under_way = pair.a->call<int(int)>("b", "slow", 2);
  profiler.stop();
  profiler.stop();
  pair.a->call<int(int)>("b", "slow", 3).get();
  CHECK(std::move(under_way).get() == 2);  // made before
  CHECK(profiler.recording().calls.size() == 2);
  const Profiler none(*pair.a);
  CHECK(none.recording().calls.empty());
}

TEST_CASE("a call is there before its future is ready") {
  Pair pair;
  const Profiler profiler(*pair.a);
  std::size_t seen = 0;
  pair.a->call<int(int)>("b", "slow", 1)
      .then([&](int) { seen = profiler.recording().calls.size(); })
      .get();
  CHECK(seen == 1);
}

TEST_CASE("of a function that returns a future the time until that is ready is recorded") {
  Pair pair;
  const Profiler profiler(*pair.a);
  auto one = pair.a->call<int(int)>("b", "later", 30);
  auto two = pair.a->call<int(int)>("b", "later", 20);
  when_all(std::move(one), std::move(two)).get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);  // as they ended
  CHECK(phases_of(recording.calls[0]).handler == 20ms);
  CHECK(phases_of(recording.calls[1]).handler == 30ms);
}

TEST_CASE("a call that fails is recorded with its error, and with the callee's times") {
  Pair pair;
  const Profiler profiler(*pair.a);
  CHECK_FALSE(test::outcome(pair.a->call<int(int)>("b", "bad", 1)));
  CHECK_FALSE(test::outcome(pair.a->call<int(int)>("b", "absent", 1)));
  CHECK_FALSE(test::outcome(pair.a->peer("b").with({.timeout = 5ms}).call<int(int)>("later", 50)));
  CHECK_FALSE(test::outcome(pair.a->call<int(int)>("nobody", "slow", 1)));
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 3);  // one was never a call
  CHECK(recording.calls[0].error == "RemoteError: std::out_of_range");
  CHECK(recording.calls[0].received != TimePoint());
  CHECK(recording.calls[1].error == "NotFound");
  CHECK(recording.calls[2].error == "TimedOut");
  CHECK(recording.calls[2].received == TimePoint());
  for (const CallRecord& call : recording.calls)
    CHECK(phases_of(call).total() == call.ended - call.called);
}

TEST_CASE("a call to a peer that is killed is recorded as lost") {
  Pair pair;
  const Profiler profiler(*pair.a);
  auto lost = pair.a->call<int(int)>("b", "later", 1000);
  pair.world.run_for(10ms);
  pair.world.kill("b");
  CHECK_FALSE(test::outcome(std::move(lost)));
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(recording.calls[0].error == "PeerLost");
}

TEST_CASE("notifications are recorded until they leave") {
  Pair pair;
  const Profiler profiler(*pair.a);
  pair.a->peer("b").notify<int(int)>("slow", 1);
  pair.world.run_for(10ms);
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(recording.calls[0].error.empty());
  CHECK(recording.calls[0].sent != TimePoint());
  CHECK(phases_of(recording.calls[0]).wire == 0ms);
}

TEST_CASE("each attempt of a call that is made again is recorded") {
  Pair pair;
  int tries = 0;
  pair.b->expose("busy", [&] {
    if (++tries < 3) throw Overloaded("later", 1ms, false);
    return tries;
  });
  const Profiler profiler(*pair.a);
  CHECK(pair.a->peer("b")
            .with({.retry = {.attempts = 5, .backoff = 1ms, .idempotent = true}})
            .call<int()>("busy")
            .get() == 3);
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 3);
  CHECK(recording.calls[0].error == "Overloaded");
  CHECK(recording.calls[2].error.empty());
}

TEST_CASE("calls of a handler come below its own, through three nodes") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [&] { pair.world.loop->advance(5ms); });
  pair.b->expose("middle", [&]() -> Future<void> {
    co_await pair.b->call<void()>("c", "leaf");
    co_await pair.b->call<void()>("c", "leaf");
  });
  const Profiler profiler(*pair.a);
  pair.a->call<void()>("b", "middle").get();
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  const CallRecord& outer = recording.calls[0];
  REQUIRE(outer.calls.size() == 2);
  for (const CallRecord& inner : outer.calls) {
    CHECK(inner.function == "leaf");
    CHECK(inner.caller.node == "b");
    CHECK(inner.callee.node == "c");
    CHECK(inner.callee.rank == 2);
    CHECK(inner.span.trace_id == outer.span.trace_id);
    CHECK(inner.span.span_id != outer.span.span_id);
    CHECK(inner.parent != 0);
    CHECK(phases_of(inner).handler == 5ms);
  }
  CHECK(outer.calls[0].parent == outer.calls[1].parent);
  const std::string table = profiler.key_averages().table();
  CHECK(table.find("rpc_async#middle(a -> b)#remote_op: rpc_async#leaf(b -> c)") !=
        std::string::npos);
}

TEST_CASE("a batch's rows say so, and have what its handler caused") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [&] { pair.world.loop->advance(2ms); });
  const Batcher<int(int)> batcher(
      {.max_size = 3, .max_wait = 10ms}, [&](std::vector<int> rows) -> Future<std::vector<int>> {
        CHECK(CallContext::current() == nullptr);  // it is part of no call
        return pair.b->call<void()>("c", "leaf").then([rows] { return rows; });
      });
  pair.b->expose("batched", batcher);
  pair.b->call<void()>("c", "leaf").get();  // connected
  const Profiler profiler(*pair.a);
  auto one = pair.a->call<int(int)>("b", "batched", 1);
  auto two = pair.a->call<int(int)>("b", "batched", 2);
  CHECK(when_all(std::move(one), std::move(two)).get() == std::tuple(1, 2));
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 2);
  std::set<std::uint64_t> spans;
  std::size_t nested_calls = 0;
  CHECK(recording.calls[0].batch.number != 0);
  for (const CallRecord& call : recording.calls) {
    CHECK(call.batch.number == recording.calls[0].batch.number);
    CHECK(call.batch.rows == 2);
    CHECK(phases_of(call).batch == 10ms);  // BatchOptions::max_wait
    CHECK(phases_of(call).handler == 4ms);
    for (const CallRecord& nested : call.calls) {
      CHECK(nested.function == "leaf");
      CHECK(nested.shared);
      spans.insert(nested.span.span_number());
      ++nested_calls;
    }
  }
  CHECK(nested_calls == 1);
  CHECK(spans.size() == 1);  // it was one call, and counts once
  const ProfileTable table = profiler.key_averages();
  const auto row = std::find_if(table.rows().begin(), table.rows().end(), [](const auto& its) {
    return its.name == "rpc_async#batched(a -> b)#remote_op: rpc_async#leaf(b -> c) (shared)";
  });
  REQUIRE(row != table.rows().end());
  CHECK(row->count == 1);
  const auto trace = nlohmann::json::parse(chrome_trace(recording));
  std::size_t calls = 0;
  for (const auto& event : trace.at("traceEvents"))
    calls += event.at("ph") == "X" && event.at("cat") == "call" ? 1 : 0;
  CHECK(calls == 3);
}

TEST_CASE("a node that is not to be profiled answers, and tells nothing") {
  Pair pair;
  NodeOptions options = pair.world.joining("shy");
  options.profiling.enabled = false;
  const Node shy{std::move(options)};
  shy.expose("slow", [&] { pair.world.loop->advance(3ms); });
  const Profiler of_shy(shy, {.answered = true});
  Profiler profiler(*pair.a);
  pair.a->call<void()>("shy", "slow").get();
  CHECK(profiler.recording().calls.at(0).received == TimePoint());
  CHECK(of_shy.recording().calls.size() == 1);
  const auto missing = profiler.gather();
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].find("NodeOptions::profiling") != std::string::npos);
}

TEST_CASE("a result that is too large is recorded with the error that its caller gets") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.limits.max_frame_bytes = 64 * 1024;
  const Node small{std::move(options)};
  small.expose("large", [] { return std::vector<double>(100'000); });
  const Profiler profiler(*pair.a);
  CHECK_FALSE(test::outcome(pair.a->call<std::vector<double>()>("small", "large")));
  const CallRecord call = profiler.recording().calls.at(0);
  CHECK(call.error == "InvalidArgument");
  CHECK(call.finished != TimePoint());
}

TEST_CASE("a failing call's record goes as far as its frame has room, and the session lives on") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [] {});
  NodeOptions options = pair.world.joining("small");
  options.limits.max_frame_bytes = 64 * 1024;
  const Node small{std::move(options)};
  small.expose("many", [&]() -> Future<void> {
    std::vector<Future<void>> calls;
    for (int i = 0; i < 1000; ++i)
      calls.push_back(small.call<void()>("c", "leaf"));
    return when_all(std::move(calls)).then([] { throw std::runtime_error("no"); });
  });
  NodeOptions caller = pair.world.joining("caller");
  caller.limits.max_frame_bytes = 64 * 1024;
  const Node from{std::move(caller)};
  const Profiler profiler(from);
  CHECK_FALSE(test::outcome(from.call<void()>("small", "many")));
  const CallRecord call = profiler.recording().calls.at(0);
  CHECK(call.error == "RemoteError: std::runtime_error");
  CHECK(call.calls.empty());
  CHECK(call.left_out == 1000);
  CHECK(from.peers().size() > 0);
  CHECK_FALSE(test::outcome(from.call<void()>("small", "absent")));
  for (const PeerInfo& peer : from.peers())
    CHECK(peer.reconnects == 0);
}

TEST_CASE("a call of a handler that is recorded itself counts once") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [] {});
  pair.b->expose("middle", [&] { return pair.b->call<void()>("c", "leaf"); });
  const Profiler of_b(*pair.b, {.answered = true});
  pair.a->call<void()>("b", "middle").get();
  const Recording recording = of_b.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(recording.calls[0].function == "middle");
  REQUIRE(recording.calls[0].calls.size() == 1);
  CHECK(recording.calls[0].calls[0].function == "leaf");
}

TEST_CASE("a trace that cannot be written says why, and leaves nothing behind") {
  Pair pair;
  const Profiler profiler(*pair.a);
  pair.a->call<int(int)>("b", "slow", 1).get();
  CHECK_THROWS_WITH(profiler.export_chrome_trace("/nowhere/trace.json"),
                    Catch::Contains("/nowhere/trace.json") && Catch::Contains("No such file"));
  const auto folder = std::filesystem::temp_directory_path() /
                      ("batchrpc_profiler_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "taken");
  CHECK_THROWS_AS(profiler.export_chrome_trace((folder / "taken").string()), InvalidArgument);
  profiler.export_chrome_trace((folder / "trace.json").string());
  const auto trace = nlohmann::json::parse(std::ifstream(folder / "trace.json"));
  CHECK(trace.at("traceEvents").size() > 3);
  profiler.export_otlp((folder / "spans.jsonl").string());
  std::ifstream spans(folder / "spans.jsonl");
  std::string line;
  REQUIRE(std::getline(spans, line));
  CHECK(nlohmann::json::parse(line).contains("resourceSpans"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder),
                      std::filesystem::directory_iterator()) == 3);
  // Through a link, and to what is no file.
  std::filesystem::create_symlink(folder / "trace.json", folder / "link");
  profiler.export_chrome_trace((folder / "link").string());
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK_THROWS_AS(profiler.export_chrome_trace("/dev/full"), InvalidArgument);
  CHECK(std::filesystem::is_character_file("/dev/full"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("exported spans have operators where that is asked for, at the time of the wall clock") {
  Pair pair;
  pair.b->expose("runs", [] {
    if (detail::OperatorSink* const sink = detail::Ambient::current()->operators())
      sink->add(OperatorRecord{.name = "aten::add", .begin = sink->now(), .end = sink->now()});
  });
  const auto unix_seconds = [] { return std::chrono::system_clock::now().time_since_epoch() / 1s; };
  const auto begun = unix_seconds();
  const Profiler profiler(*pair.a);
  const auto begin_of_recording = pair.world.loop->now();
  pair.a->call<void()>("b", "runs").get();
  const auto folder = std::filesystem::temp_directory_path() /
                      ("batchrpc_profiler_test_otlp." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "spans.jsonl").string();
  const auto operator_spans = [&] {
    std::vector<nlohmann::json> found;
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) {
      const auto request = nlohmann::json::parse(line);
      for (const auto& span : request["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        if (span["name"] == "aten::add") found.push_back(span);
      }
    }
    return found;
  };
  profiler.export_otlp(path);
  CHECK(operator_spans().empty());
  profiler.export_otlp(path, {.operators = true});
  const auto spans = operator_spans();
  REQUIRE(spans.size() == 1);
  const auto at = std::stoll(spans[0]["startTimeUnixNano"].get<std::string>()) / 1'000'000'000;
  const auto virtual_time = (pair.world.loop->now() - begin_of_recording) / 1s;
  CHECK(at >= begun);
  CHECK(at <= unix_seconds() + virtual_time + 1);
  std::filesystem::remove_all(folder);
}

}  // namespace profiler_test
}  // namespace batchrpc
