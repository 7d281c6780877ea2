#include "batchrpc/call/call_recording.hpp"

#include <new>
#include <utility>

#include "base/system_ids.hpp"

namespace batchrpc::detail {
namespace {

// Removes the calls that are more than `levels` levels below the record, and counts them as left
// out.
void prune(CallRecord& record, unsigned levels) {
  if (levels > 0) {
    for (CallRecord& call : record.calls)
      prune(call, levels - 1);
    return;
  }
  for (const CallRecord& call : record.calls)
    record.left_out += all_events_of(call);
  record.calls.clear();
}

}  // namespace

CallRecording::CallRecording(std::shared_ptr<Loop> clock, bool operators,
                             const OperatorSource* source)
    : clock_(std::move(clock)), operators_(operators), source_(source) {
  record_.received = clock_->now();
}

// The caller must hold the lock.
bool CallRecording::has_room(std::size_t events) {
  if (finished_ || events_ + events > kMaxEvents) return false;
  events_ += events;
  return true;
}

void CallRecording::add(OperatorRecord&& record) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (has_room(1)) {
      record_.operators.push_back(std::move(record));
      return;
    }
  } catch (const std::bad_alloc&) {  // NOLINT: it is left out
  }
  ++record_.left_out;
  ++operators_left_out_;
}

void CallRecording::lost(std::size_t events) noexcept {
  const std::lock_guard lock(mutex_);
  record_.left_out += events;
}

void CallRecording::add(CallRecord&& record) noexcept {
  prune(record, kMaxDepth - 1);
  const std::size_t events = events_of(record);
  const std::lock_guard lock(mutex_);
  try {
    if (has_room(events)) {
      record_.calls.push_back(std::move(record));
      return;
    }
  } catch (const std::bad_alloc&) {  // NOLINT: it is left out
  }
  record_.left_out += all_events_of(record);
}

void CallRecording::show(std::shared_ptr<RecordSink> sink, CallRecord&& known, bool told) {
  own_sink_ = std::move(sink);
  told_ = told;
  known.received = record_.received;
  record_ = std::move(known);
}

void CallRecording::note_begun() {
  const TimePoint now = clock_->now();
  const std::lock_guard lock(mutex_);
  if (record_.begun != TimePoint()) return;
  record_.begun = now;
  record_.callee.process = process_number();
  record_.callee.thread = thread_number();
}

void CallRecording::note_run(const BatchRecord* batch, const Caused& caused, bool shared) noexcept {
  const TimePoint now = clock_->now();
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (batch != nullptr) {
    if (record_.batch.number == 0) record_.batch = *batch;
    record_.batch.end = now;
  }
  const std::vector<OperatorRecord>& ran = caused.record.operators;
  std::uint64_t operators = ran.size() + caused.operators_left_out;
  std::uint64_t calls = all_events_of(caused.record) - 1 - operators;
  try {
    if (!wants_operators()) operators = 0;
    for (auto next = ran.begin(); operators > 0 && next != ran.end() && has_room(1); ++next) {
      record_.operators.push_back(*next);
      record_.operators.back().shared = shared;
      --operators;
    }
    for (const CallRecord& call : caused.record.calls) {
      if (!has_room(events_of(call))) continue;
      record_.calls.push_back(call);
      record_.calls.back().shared = shared;
      calls -= all_events_of(call);
    }
  } catch (const std::bad_alloc&) {  // NOLINT: the rest is left out
  }
  record_.left_out += operators + calls;
  operators_left_out_ += operators;
}

CallRecord CallRecording::finish(std::string error) {
  CallRecord record;
  std::uint64_t operators_left_out = 0;
  {
    const TimePoint now = clock_->now();
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) {  // perhaps with a result that could not be sent then
      if (own_ && own_->error.empty()) own_->error = std::move(error);
      return record;
    }
    record_.finished = now;
    record = std::exchange(record_, {});
    operators_left_out = operators_left_out_;
  }
  if (own_sink_) {
    own_ = record;
    if (!own_sink_->wants_operators()) own_->left_out -= operators_left_out;
    own_->error = std::move(error);
  }
  if (!operators_) {
    leave_out_operators(record);
    record.left_out -= operators_left_out;
  }
  return record;
}

void CallRecording::report_own(std::uint64_t bytes_in) {
  if (!own_) return;
  own_->bytes_in = bytes_in;
  own_sink_->add(*std::exchange(own_, std::nullopt));
}

CallRecording::Caused CallRecording::take() {
  const std::lock_guard lock(mutex_);
  events_ = 0;
  return {std::exchange(record_, {}), std::exchange(operators_left_out_, 0)};
}

}  // namespace batchrpc::detail
