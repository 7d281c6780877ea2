#include "metrics/batcher_list.hpp"

#include <utility>

#include "metrics/call_counters.hpp"

namespace batchrpc {

std::uint64_t BatcherList::add(std::string name, Statistics statistics) {
  const std::lock_guard lock(mutex_);
  entries_.emplace(next_, Entry{std::move(name), std::move(statistics)});
  return next_++;
}

void BatcherList::remove(std::uint64_t number, BatcherMetrics last) {
  std::map<std::uint64_t, Entry>::node_type gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  gone = entries_.extract(number);
  if (!gone) return;
  last.batchers = 0;
  last.queued = last.queued_bytes = last.held = last.running = 0;
  last.rows_per_second = 0;
  const bool has_room = past_.size() < kMaxCountedNames || past_.contains(gone.mapped().name);
  const std::string name = has_room ? gone.mapped().name : std::string(kOtherName);
  BatcherMetrics& past =
      past_.try_emplace(name, BatcherMetrics{.name = {}, .batchers = 0}).first->second;
  past.add(last);
}

std::vector<BatcherMetrics> BatcherList::report() const {
  std::map<std::uint64_t, Entry> entries;
  std::map<std::string, BatcherMetrics, std::less<>> all;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
    all = past_;
  }
  for (const auto& [number, entry] : entries) {
    const auto statistics = entry.statistics();
    if (!statistics) continue;
    all.try_emplace(entry.name, BatcherMetrics{.name = {}, .batchers = 0})
        .first->second.add(*statistics);
  }
  std::vector<BatcherMetrics> report;
  for (auto& [name, batcher] : all) {
    batcher.name = name;
    report.push_back(std::move(batcher));
  }
  return report;
}

}  // namespace batchrpc
