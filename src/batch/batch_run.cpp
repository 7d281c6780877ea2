#include "batchrpc/batch/batch_run.hpp"

#include <algorithm>

namespace batchrpc::detail {

const std::string& most_common(const std::vector<std::string>& kinds) {
  const std::string* best = &kinds.front();
  std::ptrdiff_t best_count = 0;
  for (const std::string& kind : kinds) {
    if (best_count > 0 && kind == *best) continue;
    const auto count = std::count(kinds.begin(), kinds.end(), kind);
    if (count > best_count) best = &kind, best_count = count;
    if (static_cast<std::size_t>(count) * 2 >= kinds.size()) break;
  }
  return *best;
}

namespace {

std::span<const std::pair<std::string, std::string>> metadata_of(const CallExtras* extras) {
  if (extras == nullptr) return {};
  return extras->metadata;
}

}  // namespace

BatchInfo describe_batch(const TakenBatch& batch, std::size_t first, std::size_t last,
                         std::size_t padding) {
  BatchInfo info;
  info.padding = padding;
  info.reason = batch.reason;
  info.started = batch.started;
  if (first < last) info.key = batch.calls[first]->key;
  info.calls.reserve(last - first);
  for (std::size_t i = first; i < last; ++i) {
    const BatchCall& call = *batch.calls[i];
    const CallExtras* const extras = call.extras.get();
    info.calls.push_back({.caller = call.caller,
                          .arrived = call.arrived,
                          .deadline = call.deadline,
                          .first_row = info.rows,
                          .rows = call.rows,
                          .priority = call.priority,
                          .trace = extras != nullptr ? extras->trace : TraceContext(),
                          .metadata = metadata_of(extras)});
    info.rows += call.rows;
  }
  return info;
}

}  // namespace batchrpc::detail
