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

void record_batch(TakenBatch& batch, const std::shared_ptr<Loop>& clock) {
  static std::atomic<std::uint64_t> batches{0};
  bool any = false;
  bool operators = false;
  for (const auto& call : batch.calls) {
    const CallRecording* const recording = recording_of(*call);
    if (recording == nullptr) continue;
    any = true;
    operators = operators || recording->wants_operators();
  }
  if (!any) return;
  batch.number = ++batches;
  Ref<CallExtras> extras(new CallExtras);
  extras->recording = std::make_shared<CallRecording>(clock, operators);
  batch.recorded = std::move(extras);
}

void record_run(TakenBatch& batch, std::size_t first, std::size_t last) {
  if (!batch.recorded) return;
  for (std::size_t i = first; i < last; ++i) {
    const BatchCall& call = *batch.calls[i];
    if (recording_of(call) == nullptr) continue;
    Ref<CallExtras> extras(new CallExtras);
    extras->trace = call.extras->trace;
    extras->recording = batch.recorded->recording;
    batch.recorded = std::move(extras);
    return;
  }
}

void tell_rows(const TakenBatch& batch, std::size_t first, std::size_t last) {
  if (!batch.recorded) return;
  const CallRecord caused = batch.recorded->recording->take();
  const BatchRecord record{.number = batch.number, .rows = batch.rows, .begin = batch.started};
  for (std::size_t i = first; i < last; ++i) {
    if (CallRecording* const recording = recording_of(*batch.calls[i]))
      recording->note_batch(record, caused);
  }
}

}  // namespace batchrpc::detail
