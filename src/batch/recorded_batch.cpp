#include "batchrpc/batch/recorded_batch.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "batchrpc/call/call_recording.hpp"

namespace batchrpc::detail {
namespace {

CallRecording* recording_of(const BatchCall& call) {
  return call.extras ? call.extras->recording.get() : nullptr;
}

}  // namespace

RecordingScope::RecordingScope(const Ref<const CallExtras>& recorded) {
  if (!recorded || !recorded->recording) return;
  context_.emplace();
  detail::ContextAccess::set_extras(*context_, recorded);
  outer_ = detail::ContextAccess::exchange_current(&*context_);
}

RecordingScope::~RecordingScope() {
  if (context_) detail::ContextAccess::exchange_current(outer_);
}

void record_run(TakenBatch& batch, std::size_t first, std::size_t last) {
  static std::atomic<std::uint64_t> batches{0};
  batch.recorded = {};
  const BatchCall* shown = nullptr;
  bool operators = false;
  const OperatorSource* source = nullptr;  // several nodes may have exposed the batcher
  for (std::size_t i = first; i < last; ++i) {
    const CallRecording* const recording = recording_of(*batch.calls[i]);
    if (recording == nullptr) continue;
    if (shown == nullptr) shown = batch.calls[i].get();
    operators = operators || recording->wants_operators();
    if (source == nullptr) source = recording->source();
  }
  if (shown == nullptr) return;
  if (batch.number == 0) batch.number = ++batches;
  Ref<CallExtras> extras(new CallExtras);
  extras->trace = shown->extras->trace;
  extras->recording =
      std::make_shared<CallRecording>(recording_of(*shown)->clock(), operators, source);
  batch.recorded = std::move(extras);
}

void report_rows(const TakenBatch& batch, std::size_t first, std::size_t last) noexcept {
  if (!batch.recorded) return;
  const CallRecording::Caused caused = batch.recorded->recording->take();
  const BatchRecord record{.number = batch.number, .rows = batch.rows, .begin = batch.started};
  const auto begin = batch.calls.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = batch.calls.begin() + static_cast<std::ptrdiff_t>(last);
  // If one handler made several of the rows, it caused this call once, and shares it with no other.
  const auto is_of = [](CallRecording* recording) {
    return [recording](const auto& call) { return recording_of(*call) == recording; };
  };
  const bool shared = first < last && !std::all_of(begin, end, is_of(recording_of(**begin)));
  for (auto call = begin; call != end; ++call) {
    CallRecording* const recording = recording_of(**call);
    if (recording == nullptr) continue;
    if ((*call)->is_peers) {
      recording->note_run(&record, caused, shared);
    } else if (std::none_of(begin, call, is_of(recording))) {
      recording->note_run(nullptr, caused, shared);
    }
  }
}

}  // namespace batchrpc::detail
