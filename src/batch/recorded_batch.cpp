#include "batchrpc/batch/recorded_batch.hpp"

#include <atomic>
#include <utility>

#include "batchrpc/node/call_recording.hpp"

namespace batchrpc::detail {
namespace {

CallRecording* recording_of(const BatchCall& call) {
  return call.extras ? call.extras->recording.get() : nullptr;
}

}  // namespace

RecordingScope::RecordingScope(const Ref<const CallExtras>& recorded) {
  if (!recorded || !recorded->recording) return;
  context_.emplace();
  context_->set_extras(recorded);
  outer_ = CallContext::exchange_current(&*context_);
}

RecordingScope::~RecordingScope() {
  if (context_) CallContext::exchange_current(outer_);
}

void record_run(TakenBatch& batch, std::size_t first, std::size_t last) {
  static std::atomic<std::uint64_t> runs{0};
  batch.recorded = {};
  const BatchCall* shown = nullptr;
  bool operators = false;
  for (std::size_t i = first; i < last; ++i) {
    const CallRecording* const recording = recording_of(*batch.calls[i]);
    if (recording == nullptr) continue;
    if (shown == nullptr) shown = batch.calls[i].get();
    operators = operators || recording->wants_operators();
  }
  if (shown == nullptr) return;
  batch.run = ++runs;
  if (batch.number == 0) batch.number = batch.run;
  Ref<CallExtras> extras(new CallExtras);
  extras->trace = shown->extras->trace;
  extras->recording = std::make_shared<CallRecording>(recording_of(*shown)->clock(), operators);
  batch.recorded = std::move(extras);
}

void tell_rows(const TakenBatch& batch, std::size_t first, std::size_t last) noexcept {
  if (!batch.recorded) return;
  const CallRecord caused = batch.recorded->recording->take();
  const BatchRecord record{.number = batch.number, .rows = batch.rows, .begin = batch.started};
  bool shared = false;  // not by rows that one handler has made
  for (std::size_t i = first; i < last; ++i)
    shared = shared || recording_of(*batch.calls[i]) != recording_of(*batch.calls[first]);
  for (std::size_t i = first; i < last; ++i) {
    const BatchCall& call = *batch.calls[i];
    if (CallRecording* const recording = recording_of(call))
      recording->note_run(batch.run, call.is_peers ? &record : nullptr, caused, shared);
  }
}

}  // namespace batchrpc::detail
