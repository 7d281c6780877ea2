#include "batchrpc/profile/profiler.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/node/call_recording.hpp"
#include "batchrpc/profile/chrome_trace.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc {
namespace {

using namespace std::chrono_literals;

// Two nodes with 1 ms between them, each way.
struct Pair {
  explicit Pair(Duration latency = 1ms) {
    world.network->set_link({.latency = latency});
    a.emplace(world.root("a"));
    b.emplace(world.join("b"));
    b->expose("slow", [this](int milliseconds) {
      world.loop->advance(milliseconds * 1ms);
      return milliseconds;
    });
    b->expose("later", [this](int milliseconds) -> Future<int> {
      return delayed(milliseconds * 1ms).then([milliseconds] { return milliseconds; });
    });
    b->expose("bad", [](int) -> int { throw std::out_of_range("too far"); });
    a->call<int(int)>("b", "slow", 0).get();  // connected
  }
  Future<void> delayed(Duration duration) const {
    auto promise = std::make_shared<Promise<void>>();
    Future<void> future = promise->get_future();
    world.loop->schedule(world.loop->now() + duration, [promise] { promise->set_value(); });
    return future;
  }

  test::VirtualWorld world;
  std::optional<Node> a;
  std::optional<Node> b;
};

using detail::CallRecording;

CallPhases phases_of(const CallRecord& call) { return CallPhases::of(call, Duration::zero()); }

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
  CHECK_FALSE(test::outcome(pair.a->call_with<int(int)>({.timeout = 5ms}, "b", "later", 50)));
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
  pair.a->notify<int(int)>("b", "slow", 1);
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
  CHECK(pair.a
            ->call_with<int()>({.retry = {.attempts = 5, .backoff = 1ms, .idempotent = true}}, "b",
                               "busy")
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
  for (const CallRecord& call : recording.calls) {
    CHECK(call.batch.number == 1);
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

TEST_CASE("what there is no room for is counted") {
  Pair pair;
  const Profiler profiler(*pair.a, {.max_events = 3});
  for (int i = 0; i < 10; ++i)
    pair.a->call<int(int)>("b", "slow", 0).get();
  CHECK(profiler.recording().calls.size() == 3);
  CHECK(profiler.recording().left_out == 7);
}

TEST_CASE("a handler that causes more than a reply tells of is counted, and answered") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [] {});
  pair.b->expose("many", [&]() -> Future<int> {
    std::vector<Future<void>> calls;
    for (int i = 0; i < 5000; ++i)
      calls.push_back(pair.b->call<void()>("c", "leaf"));
    return when_all(std::move(calls)).then([] { return 1; });
  });
  const Profiler profiler(*pair.a);
  CHECK(pair.a->call<int()>("b", "many").get() == 1);
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  CHECK(recording.calls[0].calls.size() == 4096);
  CHECK(recording.calls[0].left_out == 5000 - 4096);
}

TEST_CASE("calls of calls that go too deep are cut off, and counted") {
  Pair pair;
  const auto down = [](Node& from, const char* to) {
    from.expose("down", [&from, to](int levels) -> Future<int> {
      if (levels == 0) return make_ready_future(0);
      return from.call<int(int)>(to, "down", levels - 1).then([](int n) { return n + 1; });
    });
  };
  down(*pair.a, "b");
  down(*pair.b, "a");
  const Node c = pair.world.join("c");
  const Profiler profiler(c);
  CHECK(c.call<int(int)>("b", "down", 20).get() == 20);
  const Recording recording = profiler.recording();
  std::size_t depth = 0;
  std::uint64_t left_out = 0;
  for (const CallRecord* call = &recording.calls.back(); call != nullptr;
       call = call->calls.empty() ? nullptr : &call->calls[0]) {
    ++depth;
    left_out += call->left_out;
  }
  CHECK(depth == 1 + CallRecording::kMaxDepth);
  CHECK(depth + left_out == 21);
}

TEST_CASE("calls that a node answers are recorded where that is asked for") {
  Pair pair;
  const Profiler of_b(*pair.b, {.answered = true});
  const Profiler made_only(*pair.b);
  pair.a->call<int(int)>("b", "slow", 7).get();
  pair.a->notify<int(int)>("b", "slow", 1);
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
  int handlers = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == "handler") ++handlers;
  }
  CHECK(handlers == 4);
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
    pair.a->call_with<void()>({.trace = parent}, "b", "middle").get();
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

TEST_CASE("a node that is not to be profiled answers, and tells nothing") {
  Pair pair;
  NodeOptions options = pair.world.joining("shy");
  options.profiling = false;
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
  options.max_frame_bytes = 64 * 1024;
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
  options.max_frame_bytes = 64 * 1024;
  const Node small{std::move(options)};
  small.expose("many", [&]() -> Future<void> {
    std::vector<Future<void>> calls;
    for (int i = 0; i < 1000; ++i)
      calls.push_back(small.call<void()>("c", "leaf"));
    return when_all(std::move(calls)).then([] { throw std::runtime_error("no"); });
  });
  NodeOptions caller = pair.world.joining("caller");
  caller.max_frame_bytes = 64 * 1024;
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

TEST_CASE("a trace that cannot be written says why, and leaves nothing behind") {
  Pair pair;
  const Profiler profiler(*pair.a);
  pair.a->call<int(int)>("b", "slow", 1).get();
  CHECK_THROWS_WITH(profiler.export_chrome_trace("/nowhere/trace.json"),
                    Catch::Contains("/nowhere/trace.json") && Catch::Contains("No such file"));
  const auto folder = std::filesystem::temp_directory_path() / "batchrpc_profiler_test";
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
  CHECK(missing[0].starts_with("c: "));
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

}  // namespace
}  // namespace batchrpc
