#include "profile/trace_layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "profile/lanes.hpp"
#include "profile/times.hpp"
#include "profile/walk.hpp"

namespace batchrpc::profile {
namespace {

// The rows of one kind of a node, created as lanes are used.
class RowsOfLanes {
 public:
  RowsOfLanes(std::vector<TraceLayout::Row>& rows, std::size_t node) : rows_(rows), node_(node) {}

  template <typename Name>
  std::size_t row(std::size_t lane, Name&& name) {
    while (of_lanes_.size() <= lane) {
      rows_.push_back({node_, name(of_lanes_.size() + 1)});
      of_lanes_.push_back(rows_.size() - 1);
    }
    return of_lanes_[lane];
  }

 private:
  std::vector<TraceLayout::Row>& rows_;
  std::size_t node_;
  std::vector<std::size_t> of_lanes_;
};

// Returns the indices 0 to `count` - 1, sorted by `key`.
template <typename Key>
std::vector<std::size_t> ordered(std::size_t count, Key&& key) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

// A sort key: of slices that begin together, the longer comes first.
auto in_order(TimePoint begin, TimePoint end) { return std::pair(begin, begin - end); }

void set_back(CallTimes& times, Duration by) {
  for (TimePoint* time : {&times.called, &times.encoded, &times.sent, &times.received, &times.begun,
                          &times.handled, &times.finished, &times.replied, &times.ended,
                          &times.callee.received, &times.callee.begun, &times.callee.finished}) {
    *time -= by;
  }
}

std::string thread_name(std::uint64_t thread, std::size_t lane) {
  std::string name = thread == 0 ? "thread" : "thread " + std::to_string(thread);
  if (lane > 1) name += " (" + std::to_string(lane) + ")";
  return name;
}

}  // namespace

TraceLayout::TraceLayout(const Recording& recording, const ClockAlignment& clocks)
    : nodes(recording) {
  add(recording, clocks);
  place_calls();
  place_runs();
  place_batches();
  origin = TimePoint::max();
  for (const Call& call : calls)
    origin = std::min(origin, call.times.called);
  for (const Run& run : runs)
    origin = std::min(origin, run.begin);
  for (const Batch& batch : batches)
    origin = std::min(origin, batch.begin);
}

void TraceLayout::add(const Recording& recording, const ClockAlignment& clocks) {
  std::map<std::tuple<std::size_t, std::uint64_t, std::uint64_t>, std::size_t> known_batches;
  std::set<std::tuple<std::size_t, std::uint64_t, TimePoint, TimePoint, std::string_view>> shared;
  for_each_call(recording.calls, [&](const CallRecord& record, const CallRecord*) {
    const std::optional<Duration> ahead = clocks.callee_ahead(record);
    Call call{.record = &record, .times = CallTimes::of(record, ahead)};
    if (!is_known(call.times.called)) return;
    const bool has_callee = CallTimes::has_callee(record);
    // The node whose clock the times are on.
    const std::string& teller =
        CallTimes::has_caller(record) ? record.caller.node : record.callee.node;
    const Duration caller_ahead = call.times.called - clocks.align(teller, call.times.called);
    const Duration callee_ahead =
        caller_ahead + (has_callee ? call.times.callee_ahead : ahead.value_or(Duration::zero()));
    set_back(call.times, caller_ahead);
    const std::size_t callee = nodes.index(record.callee.node);

    if (record.batch.number != 0 && is_known(record.batch.begin)) {
      const auto [known, is_new] = known_batches.try_emplace(
          {callee, record.callee.process, record.batch.number}, batches.size());
      const TimePoint begin = record.batch.begin - callee_ahead;
      if (is_new) batches.push_back({.node = callee, .begin = begin, .end = begin});
      call.batch = known->second;
      Batch& batch = batches[call.batch];
      // The handler may run again for other rows, whose clock offsets may differ.
      batch.end = std::max(batch.end, batch.begin + between(record.batch.begin, record.batch.end));
      batch.calls.push_back(calls.size());
    }
    if (has_callee) {
      runs.push_back({Run::Kind::handler, calls.size(), callee, record.callee.thread,
                      call.times.callee.begun, call.times.callee.finished});
    }
    for (const OperatorRecord& run : record.operators) {
      if (!is_known(run.begin) || !is_known(run.end)) continue;
      if (run.shared && !shared.emplace(callee, run.thread, run.begin, run.end, run.name).second) {
        continue;
      }
      const TimePoint begin = run.begin - callee_ahead;
      const TimePoint end = std::max(begin, run.end - callee_ahead);
      runs.push_back({Run::Kind::operator_run, operators.size(), callee, run.thread, begin, end});
      operators.push_back({.record = &run, .call = calls.size(), .begin = begin, .end = end});
    }
    calls.push_back(std::move(call));
  });
}

void TraceLayout::place_calls() {
  std::vector<DisjointLanes> lanes(nodes.nodes().size());
  std::vector<RowsOfLanes> of_nodes;
  for (std::size_t node = 0; node < lanes.size(); ++node)
    of_nodes.emplace_back(rows, node);
  for (const std::size_t i : ordered(calls.size(), [&](std::size_t call) {
         return in_order(calls[call].times.called, calls[call].times.ended);
       })) {
    Call& call = calls[i];
    if (!CallTimes::has_caller(*call.record)) continue;
    const std::size_t node = nodes.index(call.record->caller.node);
    const std::size_t lane = lanes[node].place(call.times.called, call.times.ended);
    call.row = of_nodes[node].row(
        lane, [](std::size_t number) { return "calls " + std::to_string(number); });
  }
}

void TraceLayout::place_runs() {
  // If two have equal times, a handler is outside its operators. The operator recorded last ended
  // last, and is outside the others.
  const auto key = [](const Run& run) {
    return std::tuple(run.node, run.thread, in_order(run.begin, run.end), run.kind,
                      run.kind == Run::Kind::handler ? run.index : ~run.index);
  };
  std::sort(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return key(a) < key(b); });
  std::size_t first = 0;
  while (first < runs.size()) {
    const std::size_t node = runs[first].node;
    const std::uint64_t thread = runs[first].thread;
    NestedLanes lanes;
    RowsOfLanes of_thread(rows, node);
    std::size_t i = first;
    for (; i < runs.size() && runs[i].node == node && runs[i].thread == thread; ++i) {
      const Run& run = runs[i];
      const bool is_handler = run.kind == Run::Kind::handler;
      // A row of a batch only waits while its thread does other work, so it is not in the thread's
      // own row.
      const bool waits = is_handler && calls[run.index].record->batch.number != 0;
      const std::size_t lane = lanes.place(run.begin, run.end, waits ? 1 : 0);
      const std::size_t row =
          of_thread.row(lane, [&](std::size_t number) { return thread_name(thread, number); });
      (is_handler ? calls[run.index].handler_row : operators[run.index].row) = row;
    }
    first = i;
  }
}

void TraceLayout::place_batches() {
  std::vector<DisjointLanes> lanes(nodes.nodes().size());
  std::vector<RowsOfLanes> of_nodes;
  for (std::size_t node = 0; node < lanes.size(); ++node)
    of_nodes.emplace_back(rows, node);
  for (const std::size_t i : ordered(batches.size(), [&](std::size_t batch) {
         return in_order(batches[batch].begin, batches[batch].end);
       })) {
    Batch& batch = batches[i];
    const std::size_t lane = lanes[batch.node].place(batch.begin, batch.end);
    batch.row = of_nodes[batch.node].row(
        lane, [](std::size_t number) { return "batches " + std::to_string(number); });
  }
}

}  // namespace batchrpc::profile
