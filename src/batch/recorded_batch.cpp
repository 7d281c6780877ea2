#include "batchrpc/batch/recorded_batch.hpp"

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

Ref<const CallExtras> record_batch(const BatchCalls& calls, const std::shared_ptr<Loop>& clock) {
  const CallExtras* first = nullptr;
  bool operators = false;
  for (const auto& call : calls) {
    const CallRecording* const recording = recording_of(*call);
    if (recording == nullptr) continue;
    if (first == nullptr) first = call->extras.get();
    operators = operators || recording->wants_operators();
  }
  if (first == nullptr) return nullptr;
  Ref<CallExtras> extras(new CallExtras);
  extras->trace = first->trace;
  extras->recording = std::make_shared<CallRecording>(clock, operators);
  return extras;
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
