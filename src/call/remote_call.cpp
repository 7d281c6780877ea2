#include "batchrpc/call/remote_call.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes_of.hpp"
#include "base/per_thread.hpp"
#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "batchrpc/call/caller.hpp"
#include "call/coarse_deadline.hpp"
#include "call/error_kind.hpp"
#include "metrics/node_counters.hpp"
#include "wire/frame.hpp"

namespace batchrpc::detail {

ReplySink::~ReplySink() = default;
AdmissionPermit::~AdmissionPermit() = default;

TimePoint ReplySink::now() const noexcept { return {}; }

bool SubmittedCall::cancel() const noexcept {
  const std::shared_ptr<Submitter> alive = submitter.lock();
  return alive && alive->cancel_call(id);
}

void ReplyHandler::abandon() noexcept {
  Reply reply;
  reply.error =
      std::make_exception_ptr(BrokenPromise("the call was destroyed before it was answered"));
  (*this)(reply);
}

std::exception_ptr as_of_reply(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error.may_have_run() ? thrown : copy_error(error, true);
  } catch (...) {
    return thrown;
  }
}

void IncomingCall::break_promise() noexcept {
  fail(std::make_exception_ptr(
      BrokenPromise("the callee destroyed the handler before it had answered")));
}

void own_payloads(std::vector<Bytes>& payloads) {
  for (Bytes& payload : payloads) {
    if (!payload.owner() && !payload.empty()) payload = Bytes::copy(payload.span());
  }
}

void IncomingCall::keep(std::shared_ptr<ExposedFunction> function) {
  if (sink_ == nullptr) return;
  if (context_.call()) {
    if (function) context_.call()->set_function(std::move(function));
    return;
  }
  own_payloads();
  const std::span<const Word> segment = arguments_->segment;
  arguments_->words = {static_cast<Word*>(allocate_block(segment.size_bytes())),
                       FreeWords{segment.size()}};
  std::copy(segment.begin(), segment.end(), arguments_->words.get());
  arguments_->segment = {arguments_->words.get(), segment.size()};
  context_.join(
      Ref<CallState>(new CallState(id_, std::move(*arguments_), begun_, std::move(function))));
  const Ref<CallState>& state = context_.call();
  arguments_ = begun_ ? &state->arguments() : nullptr;
  if (!begun_) waited_ = true;
  state->sink = sink_->keep(state, wants_reply_);
}

CallRecording* IncomingCall::recording() const noexcept {
  return context_.extras() ? context_.extras()->recording.get() : nullptr;
}

void IncomingCall::note_begun() {
  if (CallRecording* const record = recording()) record->note_begun();
}

bool IncomingCall::begin_late() {
  if (sink_ == nullptr) return false;
  if (const auto& state = context_.call()) {
    if (!state->start()) {
      if (counters_ != nullptr) counters_->failed(ErrorCode::cancelled);
      end();
      return false;
    }
    arguments_ = &state->arguments();
  }
  const auto deadline = context_.deadline();
  if (!wants_reply_ || !deadline || !sink_->is_over(*deadline)) {
    if (place_) place_->ran = true;
    return true;
  }
  fail(std::make_exception_ptr(
      TimedOut("the call's deadline passed before it could start; it never ran", false)));
  return false;
}

void IncomingCall::refuse(const std::exception_ptr& error) {
  if (begin()) fail(error);
}

std::size_t IncomingCall::bytes() const noexcept {
  if (arguments_ == nullptr) return 0;
  return arguments_->segment.size_bytes() + bytes_of(arguments_->payloads);
}

void IncomingCall::end() {
  ReplySink* const sink = std::exchange(sink_, nullptr);
  if (CallRecording* const record = recording(); record != nullptr && !sink->is_forked_copy()) {
    record->finish(context_.cancelled() ? std::string(to_string(ErrorCode::cancelled)) : "");
    record->report_own(0);  // unless there was a reply
  }
  const bool holds_something = context_.call() || lock_ || place_;
  if (holds_something && sink->is_forked_copy()) {  // none of it is released
    static_cast<void>(place_.release());
    static_cast<void>(new AsyncMutex::Guard(std::move(lock_)));
    static_cast<void>(new CallContext(std::exchange(context_, CallContext())));
    return;
  }
  if (context_.call()) {
    context_.call()->end();
    sink->answered(*context_.call());
  }
  lock_.unlock();
  place_.reset();
}

void IncomingCall::count_by(FunctionCounters& counters, std::uint64_t arrived,
                            std::size_t bytes) noexcept {
  counters_ = &counters;
  arrived_ = arrived;
  counters.began(bytes + sizeof(Word));
}

void IncomingCall::reply(Encoder& encoder) {
  if (sink_ == nullptr) return;
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

void IncomingCall::fail(const std::exception_ptr& error, bool began) {
  if (sink_ == nullptr) return;
  if (cancelled()) {
    if (counters_ != nullptr) counters_->failed(ErrorCode::cancelled);
  } else if (wants_reply_) {
    send_error(error, began);
  } else {
    if (CallRecording* const record = recording()) record->finish(kind_of(error));
    count_error(error, began, 0);
  }
  end();
}

// Counts the error as the caller gets it, or would get it.
void IncomingCall::count_error(const std::exception_ptr& error, bool began,
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
  } catch (const std::bad_alloc&) {  // it is not stored
    return;
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

void IncomingCall::send_error(const std::exception_ptr& error, bool began) {
  // A call that a handler has made ends with its own, or this much earlier (CallOptions::timeout).
  constexpr auto kAtItsEnd = std::chrono::milliseconds(10);
  const auto send = [this](const std::exception_ptr& as, bool by_function) {
    const std::uint64_t bytes = sink_->send_error(id_, as, by_function, recording());
    count_error(as, by_function, bytes);
  };
  try {
    std::rethrow_exception(error);
  } catch (const DidNotRun& other) {
    send(other.error, false);
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

namespace {

const std::shared_ptr<LocalNode>*& this_threads_node() noexcept {
  thread_local const std::shared_ptr<LocalNode>* node = nullptr;
  return node;
}

}  // namespace

CurrentNode::CurrentNode(const std::shared_ptr<LocalNode>& node) noexcept
    : outer_(std::exchange(this_threads_node(), &node)) {}

CurrentNode::CurrentNode() noexcept : outer_(std::exchange(this_threads_node(), nullptr)) {}

CurrentNode::~CurrentNode() { this_threads_node() = outer_; }

std::shared_ptr<LocalNode> CurrentNode::get() {
  const auto* node = this_threads_node();
  return node != nullptr ? *node : nullptr;
}

namespace {

constexpr std::size_t kKeptEncoders = 4;
constexpr std::size_t kKeptWords = 16 * 1024;

struct KeptEncoders {
  std::vector<std::unique_ptr<Encoder>> encoders;
};
std::vector<std::unique_ptr<Encoder>>& store() { return per_thread<KeptEncoders>().encoders; }

}  // namespace

EncoderLease::EncoderLease() {
  auto& encoders = store();
  if (encoders.empty()) {
    encoder_ = std::make_unique<Encoder>(wire::kEnvelopeWords);
    return;
  }
  encoder_ = std::move(encoders.back());
  encoders.pop_back();
}

EncoderLease::~EncoderLease() {
  auto& encoders = store();
  if (encoders.size() >= kKeptEncoders || encoder_->words().capacity() > kKeptWords) return;
  encoder_->reset(wire::kEnvelopeWords);
  encoders.push_back(std::move(encoder_));
}

}  // namespace batchrpc::detail
