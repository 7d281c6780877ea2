#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "batchrpc/profile/call_phases.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc::test {

using namespace std::chrono_literals;

/// Nodes "w0", "w1"…, of ranks 0, 1…, with clocks that differ, whose calls are made up.
class SampleWorld {
 public:
  /// By how much each node's clock is ahead of the true time.
  std::map<int, Duration> ahead{};

  /// 46 us in all.
  static constexpr CallPhases kUsual{.encode = 1us,
                                     .queued = 2us,
                                     .wire = 10us,
                                     .waiting = 3us,
                                     .batch = 0us,
                                     .handler = 20us,
                                     .reply = 8us,
                                     .decode = 2us};

  /// So long after the true time's begin.
  [[nodiscard]] static TimePoint at(Duration time) { return TimePoint(1h) + time; }

  /// A time that a node's clock reads then.
  [[nodiscard]] TimePoint on(int node, Duration time) const { return at(time) + clock(node); }

  /// A call that spends so long on its phases; `batch` makes it a row of that batch.
  CallRecord call(std::string function, int caller, int callee, Duration start,
                  const CallPhases& phases = kUsual, BatchRecord batch = {}) {
    CallRecord call;
    call.function = std::move(function);
    call.caller = place(caller);
    call.callee = place(callee);
    call.span.trace_id[15] = 7;
    set_span(call, ++spans_);
    Duration time = start;
    call.called = on(caller, time);
    call.encoded = on(caller, time += phases.encode);
    call.sent = on(caller, time += phases.queued);
    call.received = on(callee, time += phases.wire);
    call.begun = on(callee, time += phases.waiting);
    batch.begin = on(callee, time += phases.batch);
    call.finished = batch.end = on(callee, time += phases.handler);
    if (batch.number != 0) call.batch = batch;
    call.replied = on(caller, time += phases.reply);
    call.ended = on(caller, time += phases.decode);
    call.bytes_out = 100;
    call.bytes_in = 60;
    return call;
  }

  /// What the handler of `call` calls.
  static CallRecord& nest(CallRecord& call, CallRecord&& nested) {
    nested.parent = 0;
    for (const std::uint8_t byte : call.span.span_id)
      nested.parent = nested.parent << 8 | byte;
    call.calls.push_back(std::move(nested));
    return call.calls.back();
  }

  /// An operator of `call`, from and to so long after its handler began.
  static OperatorRecord& run(CallRecord& call, std::string name, Duration begin, Duration end) {
    const TimePoint from = call.batch.number != 0 ? call.batch.begin : call.begun;
    call.operators.push_back(
        {std::move(name), from + begin, from + end, call.callee.thread, call.batch.number != 0});
    return call.operators.back();
  }

  static void set_span(CallRecord& call, std::uint64_t number) {
    for (std::size_t i = 8; i-- > 0; number >>= 8)
      call.span.span_id[i] = static_cast<std::uint8_t>(number);
  }

  [[nodiscard]] static RecordedPlace place(int node) {
    return {.node = "w" + std::to_string(node),
            .rank = node,
            .process = static_cast<std::uint64_t>(1000 + node),
            .thread = static_cast<std::uint64_t>(100 * node + 1)};
  }

 private:
  [[nodiscard]] Duration clock(int node) const {
    const auto found = ahead.find(node);
    return found == ahead.end() ? Duration::zero() : found->second;
  }

  std::uint64_t spans_ = 0;
};

/// What the callee told of a call, and what came of it, as if it had not.
inline void lose_callee(CallRecord& call) {
  call.received = call.begun = call.finished = TimePoint{};
  call.batch = {};
  call.operators.clear();
  call.calls.clear();
}

/// A call that its callee alone tells of.
inline void lose_caller(CallRecord& call) {
  call.called = call.encoded = call.sent = call.replied = call.ended = TimePoint{};
}

/// Calls among four nodes as random as they may come: nested, in batches, with operators, failed,
/// with times missing, and with times that cannot be.
inline Recording random_recording(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto some = [&](std::int64_t most) {
    return below(8) == 0
               ? Duration::zero()
               : Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most))));
  };
  SampleWorld world;
  for (int node = 1; node < 4; ++node)
    world.ahead[node] = Duration(static_cast<std::int64_t>(below(10'000'000'000))) - 5s;
  const auto any_call = [&](auto& self, int caller, Duration start, int depth) -> CallRecord {
    const int callee = static_cast<int>(below(4));
    CallPhases phases{some(3000), some(3000),   some(9000), some(3000),
                      0us,        some(50'000), some(9000), some(3000)};
    BatchRecord batch;
    if (below(3) == 0) {
      batch.number = 1 + below(10);
      batch.rows = 1 + below(4);
      phases.batch = some(9000);
    }
    CallRecord call =
        world.call("f" + std::to_string(below(3)), caller, callee, start, phases, batch);
    call.callee.thread += below(2);
    for (std::uint64_t i = below(4); i > 0; --i) {
      const Duration begin = some(20'000);
      SampleWorld::run(call, "aten::op" + std::to_string(i), begin, begin + some(10'000));
    }
    for (std::uint64_t i = depth < 3 ? below(3) : 0; i > 0; --i)
      SampleWorld::nest(call, self(self, callee, start + some(50'000), depth + 1));
    if (below(5) == 0) {
      call.error = "PeerLost";
      lose_callee(call);
      if (below(2) == 0) call.replied = {};
      if (below(3) == 0) call.sent = {};
      if (below(3) == 0) call.encoded = {};
    } else if (below(5) == 0) {
      for (TimePoint* time : {&call.encoded, &call.sent, &call.replied, &call.received, &call.begun,
                              &call.finished, &call.batch.begin, &call.batch.end}) {
        if (below(4) == 0) *time = {};
        if (below(16) == 0) *time += some(2'000'000'000) - 1s;
        if (below(64) == 0) *time = below(2) == 0 ? TimePoint::max() : TimePoint::min();
      }
    }
    return call;
  };
  Recording recording{.node = "w0", .rank = 0};
  for (int i = 0; i < count; ++i) {
    const Duration start(
        static_cast<std::int64_t>(below(static_cast<std::uint64_t>(count)) * 5000));
    recording.calls.push_back(any_call(any_call, static_cast<int>(below(2)), start, 0));
  }
  return recording;
}

}  // namespace batchrpc::test
