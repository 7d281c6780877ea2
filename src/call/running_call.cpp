#include "batchrpc/call/running_call.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

#include "base/bytes_of.hpp"
#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "call/coarse_deadline.hpp"
#include "call/error_kind.hpp"
#include "metrics/node_counters.hpp"
#include "wire/frame.hpp"

namespace batchrpc::detail {

ReplySink::~ReplySink() = default;
AdmissionPermit::~AdmissionPermit() = default;

std::shared_ptr<LocalNode> ReplySink::node() const { return nullptr; }
TimePoint ReplySink::now() const noexcept { return {}; }
void ReplySink::handler_threw(std::string_view /*function*/, const std::exception_ptr& /*error*/,
                              bool /*of_notification*/) {}

void RunningCall::break_promise() noexcept {
  fail(std::make_exception_ptr(
      BrokenPromise("the callee destroyed the handler before it had answered")));
}

void own_payloads(std::vector<Bytes>& payloads) {
  for (Bytes& payload : payloads) {
    if (!payload.owner() && !payload.empty()) payload = Bytes::copy(payload.span());
  }
}

void RunningCall::keep(std::shared_ptr<ExposedFunction> function) {
  if (!ContextAccess::call(context_)) {
    make_state(true, std::move(function));
  } else if (function) {
    ContextAccess::call(context_)->set_function(std::move(function));
  }
}

void RunningCall::make_state(bool started, std::shared_ptr<ExposedFunction> function) {
  own_payloads();
  const std::span<const Word> segment = arguments_->segment;
  arguments_->words = {static_cast<Word*>(allocate_block(segment.size_bytes())),
                       FreeWords{segment.size()}};
  std::copy(segment.begin(), segment.end(), arguments_->words.get());
  arguments_->segment = {arguments_->words.get(), segment.size()};
  arguments_->charge.set(bytes_of_kept_call(segment.size_bytes(), bytes_of(arguments_->payloads),
                                            arguments_->payloads.size()));
  ContextAccess::join(context_, Ref<CallState>(new CallState(id_, std::move(*arguments_), started,
                                                             std::move(function))));
  const Ref<CallState>& state = ContextAccess::call(context_);
  arguments_ = &state->arguments();
  state->sink = sink_->keep(state, wants_reply_);
}

bool RunningCall::is_late() const noexcept {
  const auto deadline = context_.deadline();
  return wants_reply_ && deadline && sink_->is_over(*deadline);
}

CallRecording* RunningCall::recording() const noexcept {
  return ContextAccess::extras(context_) ? ContextAccess::extras(context_)->recording.get()
                                         : nullptr;
}

void RunningCall::record_begun() {
  if (CallRecording* const record = recording()) record->note_begun();
}

std::size_t RunningCall::bytes() const noexcept {
  return arguments_->segment.size_bytes() + bytes_of(arguments_->payloads);
}

void RunningCall::end() {
  ReplySink* const sink = std::exchange(sink_, nullptr);
  if (CallRecording* const record = recording(); record != nullptr && !sink->is_forked_copy()) {
    record->finish(context_.cancelled() ? std::string(to_string(ErrorCode::cancelled)) : "");
    record->report_own(0);  // unless there was a reply
  }
  const bool holds_something = ContextAccess::call(context_) || lock_ || permit_;
  if (holds_something && sink->is_forked_copy()) {  // none of it is released
    static_cast<void>(permit_.release());
    static_cast<void>(new AsyncMutex::Guard(std::move(lock_)));
    static_cast<void>(new CallContext(std::exchange(context_, CallContext())));
    return;
  }
  if (ContextAccess::call(context_)) {
    ContextAccess::call(context_)->end();
    sink->answered(*ContextAccess::call(context_));
  }
  lock_.unlock();
  permit_.reset();
}

void RunningCall::count_by(FunctionCounters& counters, std::uint64_t arrived,
                           std::size_t bytes) noexcept {
  counters_ = &counters;
  arrived_ = arrived;
  counters.began(bytes + sizeof(Word));
}

void RunningCall::reply(Encoder& encoder) {
  if (sink_ == nullptr) return;
  arguments_->charge.release();  // before the caller learns that it may send more
  const bool is_cancelled = cancelled();
  const std::uint64_t now = counters_ != nullptr ? counters_->stopwatch().ticks() : 0;
  std::uint64_t bytes = 0;
  if (wants_reply_ && !is_cancelled) {
    bytes = bytes_of(encoder.payloads());
    sink_->send_result(id_, encoder, recording());
    bytes += encoder.words().size() * sizeof(Word);  // includes the payloads' sizes
  }
  if (counters_ != nullptr) {
    if (is_cancelled) {
      counters_->failed(ErrorCode::cancelled);
    } else {
      counters_->answered(counters_->stopwatch().between(arrived_, now), bytes);
    }
  }
  end();
}

std::exception_ptr why_not_run(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const DidNotRun& missing) {
    return missing.error;
  } catch (...) {
    return nullptr;
  }
}

void RunningCall::fail(const std::exception_ptr& error, bool began) {
  if (sink_ == nullptr) return;
  if (began) arguments_->charge.release();
  if (const std::exception_ptr why = why_not_run(error)) return fail(why, false);
  if (cancelled()) {
    if (counters_ != nullptr) counters_->failed(ErrorCode::cancelled);
    if (began) report_thrown(error);
  } else if (wants_reply_) {
    try {
      send_error(error, began);
    } catch (
        const std::bad_alloc&) {  // NOLINT: the caller gets no answer; its time-out ends the call
    }
  } else {
    if (CallRecording* const record = recording()) record->finish(kind_of(error));
    count_error(error, began, 0);
  }
  end();
}

// Counts the error as the caller gets it, or would get it.
void RunningCall::count_error(const std::exception_ptr& error, bool began,
                              std::uint64_t bytes) noexcept {
  if (counters_ == nullptr || sink_->is_forked_copy()) return;
  const ErrorCode code = wire::code_on_wire(error, began);
  counters_->failed(code, bytes);
  try {
    counters_->node().errors.add({.kind = ErrorRecord::Kind::answer,
                                  .at = sink_->now(),
                                  .code = code,
                                  .function = counters_->name,
                                  .peer = context_.caller().name,
                                  .text = describe(error)});
  } catch (const std::bad_alloc&) {  // NOLINT: it is not stored
  }
  if (began) report_thrown(error);
}

// Reports an exception of the function, unless that is an error by which it refuses the call.
void RunningCall::report_thrown(const std::exception_ptr& error) noexcept {
  if (counters_ == nullptr || sink_->is_forked_copy()) return;
  if (wire::code_on_wire(error, true) != ErrorCode::remote_error) return;
  try {
    sink_->handler_threw(counters_->name, error, !wants_reply_);
  } catch (const std::bad_alloc&) {  // NOLINT: it is not reported
  }
}

namespace {

// Whether the error is of a nested call with as much time as the call whose handler made it. This
// counts no matter how early the callee has reported a time-out, since time may pass faster by its
// clock.
bool had_as_much_time(const TimedOut& late, TimePoint deadline) {
  constexpr auto kCoarse = std::chrono::milliseconds(100);  // the lag of a coarse clock under load
  const CallDiagnostics* const diagnostics = late.diagnostics();
  if (diagnostics == nullptr) return false;
  const bool is_coarse = diagnostics->deadline - diagnostics->called_at >= kCoarseFrom - kCoarse;
  return diagnostics->deadline >= deadline - (is_coarse ? kCoarse : Duration::zero()) &&
         diagnostics->deadline <= deadline + kCoarse;
}

}  // namespace

void RunningCall::send_error(const std::exception_ptr& error, bool began) {
  // A call that a handler has made ends with its own, or this much earlier (CallOptions::timeout).
  constexpr auto kAtItsEnd = std::chrono::milliseconds(10);
  const auto send = [this](const std::exception_ptr& as, bool by_function) {
    const std::uint64_t bytes = sink_->send_error(id_, as, by_function, recording());
    count_error(as, by_function, bytes);
  };
  try {
    std::rethrow_exception(error);
  } catch (const TimedOut& late) {
    const auto deadline = context_.deadline();
    const bool over =
        deadline && (sink_->is_over(*deadline - kAtItsEnd) || had_as_much_time(late, *deadline));
    if (began && over) {
      const std::string text =
          std::string("the call's deadline passed while it ran: ") + late.what();
      send(std::make_exception_ptr(TimedOut(text, true)), false);
    } else {
      send(error, began);
    }
  } catch (...) {
    send(error, began);
  }
}

}  // namespace batchrpc::detail
