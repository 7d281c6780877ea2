#include "batchrpc/profile/clock_alignment.hpp"

#include <algorithm>
#include <utility>

#include "profile/times.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace {

using profile::is_known;
using profile::kFarthest;

// The range of an offset.
struct Interval {
  Duration low{};
  Duration high{};
};

// The ends of intervals. At equal positions, begins come before ends, since intervals are closed.
struct Edge {
  Duration at{};
  bool ends = false;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

// The calls between two nodes: the intervals they give for the second's clock against the first's.
struct Pair {
  std::vector<Edge> edges;

  std::uint64_t samples() const { return edges.size() / 2; }

  // The first position where most intervals overlap.
  Interval agreed() {
    std::sort(edges.begin(), edges.end());
    Interval best;
    std::size_t most = 0;
    std::size_t open = 0;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (edges[i].ends) {
        --open;
      } else if (++open > most) {
        most = open;
        best = {edges[i].at, edges[i + 1].at};  // an interval is open, so an edge follows
      }
    }
    return best;
  }
};

struct Link {
  std::size_t to = 0;
  Duration offset{};  // of its clock against that of the link's start
  Duration error{};
  std::uint64_t samples = 0;
};

std::optional<Interval> sample_of(const CallRecord& call) {
  for (const TimePoint time : {call.sent, call.received, call.finished, call.replied}) {
    if (!is_known(time)) return std::nullopt;
  }
  // Received after sent, and replied after finished.
  const Interval interval{call.finished - call.replied, call.received - call.sent};
  if (interval.low > interval.high || call.received > call.finished) return std::nullopt;
  return interval;
}

Duration within_range(Duration offset) { return std::clamp(offset, -kFarthest, kFarthest); }

}  // namespace

ClockAlignment::ClockAlignment(const Recording& recording) {
  const auto for_each_sample = [&](const auto& visit) {
    profile::for_each_call(recording.calls, visit);
    profile::for_each_call(recording.clock_samples, visit);
  };
  std::string reference = recording.calls.empty() ? "" : recording.calls.front().caller.node;
  for_each_sample([&](const CallRecord& call, const CallRecord*) {
    for (const std::string* node : {&call.caller.node, &call.callee.node}) {
      index_.emplace(*node, 0);
      if (*node == recording.node) reference = *node;
    }
  });
  if (index_.empty()) return;
  offsets_.push_back({.node = reference, .known = true});
  for (auto& [node, index] : index_) {
    if (node == reference) continue;
    index = offsets_.size();
    offsets_.push_back({.node = node});
  }

  std::map<std::pair<std::size_t, std::size_t>, Pair> pairs;
  for_each_sample([&](const CallRecord& call, const CallRecord*) {
    const std::size_t caller = index_.find(call.caller.node)->second;
    const std::size_t callee = index_.find(call.callee.node)->second;
    if (caller == callee) return;
    std::optional<Interval> sample = sample_of(call);
    if (!sample) return;
    if (caller > callee) sample = {-sample->high, -sample->low};
    auto& edges = pairs[std::minmax(caller, callee)].edges;
    edges.push_back({sample->low, false});
    edges.push_back({sample->high, true});
  });
  std::vector<std::vector<Link>> links(offsets_.size());
  for (auto& [nodes, pair] : pairs) {
    const Interval interval = pair.agreed();
    const Duration width = interval.high - interval.low;
    const Duration offset = interval.low + width / 2;
    const Duration error = width - width / 2;
    links[nodes.first].push_back({nodes.second, offset, error, pair.samples()});
    links[nodes.second].push_back({nodes.first, -offset, error, pair.samples()});
  }

  // Dijkstra's shortest paths, weighted by error.
  std::vector<bool> settled(offsets_.size(), false);
  for (;;) {
    std::size_t next = offsets_.size();
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      if (settled[i] || !offsets_[i].known) continue;
      if (next == offsets_.size() || offsets_[i].error < offsets_[next].error) next = i;
    }
    if (next == offsets_.size()) break;
    settled[next] = true;
    for (const Link& link : links[next]) {
      ClockOffset& to = offsets_[link.to];
      const Duration error = within_range(offsets_[next].error + link.error);
      if (settled[link.to] || (to.known && to.error <= error)) continue;
      to.offset = within_range(offsets_[next].offset + link.offset);
      to.error = error;
      to.samples = link.samples;
      to.known = true;
    }
  }
}

const ClockOffset* ClockAlignment::find(std::string_view node) const noexcept {
  const auto found = index_.find(node);
  return found == index_.end() ? nullptr : &offsets_[found->second];
}

TimePoint ClockAlignment::align(std::string_view node, TimePoint time) const noexcept {
  const ClockOffset* offset = find(node);
  return offset == nullptr || !is_known(time) ? time : time - offset->offset;
}

std::optional<Duration> ClockAlignment::callee_ahead(const CallRecord& call) const noexcept {
  if (call.caller.node == call.callee.node) return Duration::zero();
  const ClockOffset* caller = find(call.caller.node);
  const ClockOffset* callee = find(call.callee.node);
  if (caller == nullptr || callee == nullptr || !caller->known || !callee->known) {
    return std::nullopt;
  }
  return callee->offset - caller->offset;
}

}  // namespace batchrpc
