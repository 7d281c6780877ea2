#include "batchrpc/profile/recording.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "batchrpc/profile/call_times.hpp"
#include "profile/times.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The limit on nested calls, whatever the records say: functions that walk the calls are recursive.
constexpr std::size_t kMaxLevels = 64;

struct Entry {
  CallRecord call;  // without the calls it caused
  std::size_t parent = kNone;
  std::size_t levels = 1;  // of this call and those it caused
  std::vector<std::size_t> children{};
};

int times_told(const CallRecord& call) {
  int known = 0;
  for (const TimePoint time : {call.called, call.encoded, call.sent, call.replied, call.ended,
                               call.received, call.begun, call.finished, call.batch.begin}) {
    if (profile::is_known(time)) ++known;
  }
  return known;
}

// Whether record `a` of a call is more complete than `b`.
bool tells_more(const CallRecord& a, const CallRecord& b) {
  const int times_a = times_told(a);
  const int times_b = times_told(b);
  return times_a != times_b ? times_a > times_b : a.operators.size() > b.operators.size();
}

// Adds a side of the call that `kept` lacks, for example because the call had timed out.
void complete(CallRecord& kept, CallRecord&& other) {
  if (!CallTimes::has_caller(kept) && CallTimes::has_caller(other)) {
    kept.caller = std::move(other.caller);
    kept.called = other.called;
    kept.encoded = other.encoded;
    kept.sent = other.sent;
    kept.replied = other.replied;
    kept.ended = other.ended;
    kept.bytes_out = other.bytes_out;
    kept.bytes_in = other.bytes_in;
    kept.parent = other.parent;
    kept.parent_is_external = other.parent_is_external;
    kept.failed_at_callee_alone = !kept.error.empty() && other.error.empty();
    if (!other.error.empty()) kept.error = std::move(other.error);
  }
  if (!CallTimes::has_callee(kept) && CallTimes::has_callee(other)) {
    kept.callee = std::move(other.callee);
    kept.received = other.received;
    kept.begun = other.begun;
    kept.finished = other.finished;
    kept.batch = other.batch;
    kept.failed_at_callee_alone = kept.error.empty() && !other.error.empty();
    if (kept.error.empty()) kept.error = std::move(other.error);
  }
  kept.shared = kept.shared || other.shared;
  kept.left_out = std::max(kept.left_out, other.left_out);
  if (kept.operators.empty()) kept.operators = std::move(other.operators);
}

// All calls, each once, with the calls they caused.
class Calls {
 public:
  void add(std::vector<CallRecord>&& calls, std::size_t parent = kNone) {
    for (CallRecord& call : calls) {
      std::vector<CallRecord> caused = std::move(call.calls);
      call.calls.clear();
      add(std::move(caused), place(std::move(call), parent));
    }
  }

  std::vector<CallRecord> trees() {
    put_below_parents();
    std::vector<std::size_t> roots;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      (entries_[i].parent == kNone ? roots : entries_[entries_[i].parent].children).push_back(i);
    }
    return take(roots);
  }

 private:
  std::size_t place(CallRecord&& call, std::size_t parent) {
    const std::uint64_t span = call.span.span_number();
    if (span != 0) {
      const auto [known, is_new] = by_span_.emplace(span, entries_.size());
      if (!is_new) {
        Entry& entry = entries_[known->second];
        if (tells_more(call, entry.call)) std::swap(call, entry.call);
        complete(entry.call, std::move(call));
        if (entry.parent == kNone && !is_within(parent, known->second))
          put_below(known->second, parent);
        return known->second;
      }
    }
    entries_.push_back({std::move(call)});
    put_below(entries_.size() - 1, parent);
    return entries_.size() - 1;
  }

  // Moves calls below the handler that made them, if the handler's own call had ended before them.
  void put_below_parents() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const CallRecord& call = entries_[i].call;
      if (entries_[i].parent != kNone || call.parent == 0 || call.parent_is_external) continue;
      const auto parent = by_span_.find(call.parent);
      if (parent != by_span_.end() && !is_within(parent->second, i)) put_below(i, parent->second);
    }
  }

  // Leaves the call at the top if it would be too deep otherwise.
  void put_below(std::size_t entry, std::size_t parent) {
    std::size_t above = 0;
    for (std::size_t i = parent; i != kNone; i = entries_[i].parent)
      ++above;
    if (above + entries_[entry].levels > kMaxLevels) return;
    entries_[entry].parent = parent;
    std::size_t levels = entries_[entry].levels;
    for (std::size_t i = parent; i != kNone; i = entries_[i].parent)
      entries_[i].levels = std::max(entries_[i].levels, ++levels);
  }

  // Whether the call is `outer` or caused by it. The calls must stay a tree, whatever the records
  // say.
  bool is_within(std::size_t entry, std::size_t outer) const {
    while (entry != kNone && entry != outer)
      entry = entries_[entry].parent;
    return entry == outer;
  }

  std::vector<CallRecord> take(const std::vector<std::size_t>& which) {
    std::vector<CallRecord> calls;
    calls.reserve(which.size());
    for (const std::size_t i : which) {
      calls.push_back(std::move(entries_[i].call));
      calls.back().calls = take(entries_[i].children);
    }
    return calls;
  }

  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::size_t> by_span_;
};

}  // namespace

void merge(Recording& into, Recording&& other) {
  Calls calls;
  calls.add(std::move(into.calls));
  calls.add(std::move(other.calls));
  into.calls = calls.trees();
  other.calls.clear();
  std::move(other.clock_samples.begin(), other.clock_samples.end(),
            std::back_inserter(into.clock_samples));
  into.left_out += other.left_out;
  into.sampled = std::max(into.sampled, other.sampled);
  if (into.node.empty()) {
    into.node = std::move(other.node);
    into.rank = other.rank;
  }
}

}  // namespace batchrpc
