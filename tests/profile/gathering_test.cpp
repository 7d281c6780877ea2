#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/profile.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "node/node_core.hpp"
#include "node/recorded_calls.hpp"
#include "profile/gathering.hpp"
#include "profile/profiled_pair.hpp"
#include "profile/sample_records.hpp"

// Profiler::gather(): what it keeps and counts, of peers of any clock.
namespace batchrpc {
namespace gathering_test {

using namespace std::chrono_literals;

struct Pair : test::ProfiledPair {
  Pair() {
    a->expose("empty", [] {});
  }
  // So many, of b's own.
  void calls_of_b(int count) const {
    for (int i = 0; i < count; i += 100) {
      std::vector<Future<void>> calls;
      for (int j = i; j < std::min(count, i + 100); ++j)
        calls.push_back(b->call<void()>("a", "empty"));
      when_all(std::move(calls)).get();
    }
  }
};

void check_kept(const Profiler& profiler, std::size_t calls, std::uint64_t left_out) {
  const Recording recording = profiler.recording();
  CHECK(recording.calls.size() == calls);
  CHECK(recording.left_out == left_out);
}

TEST_CASE("gathering counts all that it has no room for, of each of a node's profilers") {
  Pair pair;
  const Profiler first(*pair.b);
  pair.calls_of_b(15'000);
  const Profiler second(*pair.b, {.max_events = 6'000});
  pair.calls_of_b(10'000);
  Profiler profiler(*pair.a, {.max_events = 1'000});
  CHECK(profiler.gather().empty());
  check_kept(profiler, 1'000, (25'000 - 1'000) + 10'000);
  CHECK(profiler.gather().empty());
  check_kept(profiler, 1'000, (25'000 - 1'000) + 10'000);
}

TEST_CASE("calls that several profilers of a node have take the room of one") {
  Pair pair;
  const Profiler first(*pair.b);
  const Profiler second(*pair.b);
  pair.calls_of_b(80);
  Profiler profiler(*pair.a, {.max_events = 100});
  CHECK(profiler.gather().empty());
  check_kept(profiler, 80, 0);
}

TEST_CASE("what gathering keeps of a peer is bounded, however often it is asked") {
  Pair pair;
  Profiler profiler(*pair.a, {.max_events = 100});
  for (int round = 0; round < 3; ++round) {
    const Profiler of_b(*pair.b);
    pair.calls_of_b(80);
    CHECK(profiler.gather().empty());
  }
  check_kept(profiler, 100, 140);
  CHECK(profiler.gather().empty());  // of b's profilers none lives
  check_kept(profiler, 100, 140);
  const Profiler of_b(*pair.b);
  pair.calls_of_b(10);
  CHECK(profiler.gather().empty());
  check_kept(profiler, 100, 150);
  pair.calls_of_b(10);
  CHECK(profiler.gather().empty());  // again with those before, which count once
  check_kept(profiler, 100, 160);
}

TEST_CASE("a peer whose recorded calls have no end is given up") {
  Pair pair;
  const auto core = detail::NodeAccess::core(*pair.b);
  core->functions().remove(recorded_calls::kRecorded);
  const auto page = [](std::uint64_t store, std::uint64_t call) {
    return recorded_calls::Page{.next_store = store, .next_call = call, .more = true};
  };
  core->expose(std::make_shared<detail::TypedFunction<std::decay_t<decltype(page)>,
                                                      detail::FunctionTraits<decltype(page)>>>(
      std::string(recorded_calls::kRecorded), page, ExposeOptions{.short_handler = true}));
  Profiler profiler(*pair.a);
  const auto failed = profiler.gather();
  REQUIRE(failed.size() == 1);
  CHECK_THAT(failed.front(), Catch::Contains("do not go on"));
}

TEST_CASE("a call that has caused more than there is room for keeps what there was") {
  test::SampleWorld world;
  CallRecord outer = world.call("episode", 0, 1, 0us);
  std::vector<CallRecord> steps;
  for (int i = 0; i < 6; ++i)
    steps.push_back(test::SampleWorld::nest(outer, world.call("step", 1, 2, 17us)));
  outer.calls.clear();
  profile::GatheredPeer peer(5);
  profile::Told told;
  told.stores[0].calls = {outer, steps[0], steps[1], steps[2]};
  peer.take(1, std::move(told));
  for (const std::size_t kept : {4u, 5u}) {
    REQUIRE(peer.recording().calls.size() == 1);
    CHECK(detail::events_of(peer.recording().calls[0]) == kept);
    CHECK(peer.recording().left_out == (kept == 4 ? 0 : 2));
    profile::Told later;
    later.stores[1].calls = {steps[3], steps[4], steps[5]};
    peer.take(1, std::move(later));
  }
}

TEST_CASE("what was left out of a peer's life before counts beside that of the next one") {
  Pair pair;
  Profiler profiler(*pair.a, {.max_events = 100});
  for (int life = 0; life < 2; ++life) {
    if (life > 0) {
      pair.b.reset();
      pair.b.emplace(pair.world.join("b"));
    }
    const Profiler of_b(*pair.b);
    pair.calls_of_b(150);
    CHECK(profiler.gather().empty());
  }
  check_kept(profiler, 100, 200);
}

TEST_CASE("what gathering had to let go stays counted, though it is told no more") {
  test::SampleWorld world;
  CallRecord outer = world.call("outer", 0, 1, 0us);
  const CallRecord inner = test::SampleWorld::nest(outer, world.call("inner", 1, 2, 17us));
  outer.calls.clear();
  profile::GatheredPeer peer(3);
  profile::Told told;
  told.stores[0].calls = {outer};
  told.stores[1].calls = {world.call("x", 0, 1, 50us), world.call("y", 0, 1, 60us)};
  peer.take(1, std::move(told));
  CHECK(peer.recording().left_out == 0);
  for (int again = 0; again < 2; ++again) {
    profile::Told later;
    later.stores[0].calls = {outer, inner};
    peer.take(1, std::move(later));
    CHECK(peer.recording().left_out == 1);
  }
}

TEST_CASE("stores that there was no time to ask are not counted twice") {
  profile::GatheredPeer peer(3);
  for (const bool all : {true, false, true}) {
    profile::Told told;
    told.stores[1].left_out = 10;
    if (all) told.stores[4].left_out = 20;
    if (!all) told.asked_before = 2;
    peer.take(1, std::move(told));
    CHECK(peer.recording().left_out == 30);
  }
  profile::Told told;  // the second one's profiler is gone
  told.stores[1].left_out = 11;
  peer.take(1, std::move(told));
  CHECK(peer.recording().left_out == 31);
}

TEST_CASE(
    "after gathering a call that timed out and a notification have their callee's side, too") {
  Pair pair;
  const Node c = pair.world.join("c");
  c.expose("leaf", [&] { return pair.delayed(30ms); });
  pair.b->expose("middle", [&] { return pair.b->call<void()>("c", "leaf"); });
  pair.b->call<void()>("c", "leaf").get();  // connected
  Profiler profiler(*pair.a);
  const Profiler of_b(*pair.b, {.answered = true});
  CHECK_FALSE(test::outcome(pair.a->peer("b").with({.timeout = 10ms}).call<void()>("middle")));
  pair.a->peer("b").notify<int(int)>("slow", 3);
  pair.a->peer("b").notify<int(int)>("bad", 3);
  pair.world.run_for(50ms);
  CHECK(profiler.gather().empty());
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 3);
  for (const CallRecord& call : recording.calls) {
    CHECK(call.called != TimePoint());
    CHECK(call.received == call.sent + 1ms);
    CHECK(call.finished > call.ended);
  }
  CHECK(recording.calls[0].error == "TimedOut");
  CHECK(recording.calls[1].error.empty());
  CHECK_FALSE(recording.calls[0].failed_at_callee_alone);
  CHECK(recording.calls[2].error == "std::out_of_range");
  CHECK(recording.calls[2].failed_at_callee_alone);
  REQUIRE(recording.calls[0].calls.size() == 1);
  CHECK(recording.calls[0].calls[0].function == "leaf");
}

TEST_CASE("nodes whose clocks differ are on one clock after gathering") {
  SimulatedWorld world;
  world.network().set_link({.latency = 1ms});
  world.set_clock("ahead", {.offset = 100h});
  world.set_clock("behind", {.offset = -3000s});
  const Node root(world.options("root"));
  const Node ahead(world.options("ahead"));
  const Node behind(world.options("behind"));
  behind.expose("late", [&] { world.loop()->advance(5ms); });
  const Profiler of_ahead(ahead);
  Profiler profiler(root);
  ahead.call<void()>("behind", "late").get();  // no call is from or to the root
  CHECK(profiler.gather().empty());
  const Recording recording = profiler.recording();
  REQUIRE(recording.calls.size() == 1);
  const ClockAlignment clocks(recording);
  const auto check_clock = [&](const char* node, Duration offset) {
    const ClockOffset* const clock = clocks.find(node);
    REQUIRE(clock != nullptr);
    CHECK(clock->known);
    CHECK(clock->offset >= offset - clock->error);
    CHECK(clock->offset <= offset + clock->error);
    CHECK(clock->error <= 2ms);
  };
  check_clock("root", 0ms);
  check_clock("ahead", 100h);
  check_clock("behind", -3000s);
  const CallPhases phases =
      CallPhases::of(recording.calls[0], clocks.callee_ahead(recording.calls[0]));
  CHECK(phases.handler == 5ms);
  CHECK(phases.wire <= 2ms);
}

}  // namespace gathering_test
}  // namespace batchrpc
