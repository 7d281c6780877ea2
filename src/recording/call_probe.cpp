#include "recording/call_probe.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "call/error_kind.hpp"

namespace batchrpc::detail {

CallProbe::CallProbe(std::shared_ptr<Loop> clock, std::shared_ptr<RecordSink> sink,
                     CallRecord&& record, bool wants_reply)
    : clock_(std::move(clock)),
      sink_(std::move(sink)),
      wants_reply_(wants_reply),
      record_(std::move(record)) {}

CallProbe::~CallProbe() {
  if (record_.error.empty()) record_.error = to_string(ErrorCode::not_sent);
  end();
}

void CallProbe::replied(std::uint64_t bytes) {
  record_.replied = clock_->now();
  record_.bytes_in = bytes;
}

void CallProbe::set_callee(const PeerIdentity& callee) {
  record_.callee.node = callee.name;
  record_.callee.rank = callee.rank;
}

void CallProbe::tells(CallRecord&& callee) {
  if (events_of(callee) > CallRecording::kMaxEvents + 1)  // our own nodes never send as much
    leave_out_caused(callee);
  record_.callee.process = callee.callee.process;
  record_.callee.thread = callee.callee.thread;
  record_.received = callee.received;
  record_.begun = callee.begun;
  record_.finished = callee.finished;
  record_.batch = callee.batch;
  record_.operators = std::move(callee.operators);
  record_.calls = std::move(callee.calls);
  record_.left_out = callee.left_out;
}

void CallProbe::failed(const std::exception_ptr& error) {
  if (record_.error.empty()) record_.error = kind_of(error);
}

void CallProbe::end() noexcept {
  if (ended_.exchange(true, std::memory_order_acq_rel)) return;
  record_.sent = TimePoint(Duration(sent_.load(std::memory_order_relaxed)));
  record_.ended = clock_->now();
  sink_->add(std::move(record_));
}

void CallProbe::taken() noexcept {
  sent_.store(clock_->now().time_since_epoch().count(), std::memory_order_relaxed);
  if (!wants_reply_) end();
}

void end_record(CallProbe& probe, const std::exception_ptr& error) noexcept {
  if (error) probe.failed(error);
  probe.end();
}

}  // namespace batchrpc::detail
