#include <algorithm>
#include <string>
#include <utility>

#include "base/system_ids.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/coarse_deadline.hpp"
#include "call/function_table.hpp"
#include "call/local_node.hpp"
#include "recording/call_tracer.hpp"
#include "session/flush_scope.hpp"
#include "session/function_limits.hpp"
#include "session/outgoing_calls.hpp"

// How a session's own calls are sent, and how callers wait for room.
namespace batchrpc {
namespace {

void check(const detail::Metadata& metadata) {
  if (wire::is_within_limits(metadata)) return;
  if (std::any_of(metadata.begin(), metadata.end(),
                  [](const auto& entry) { return entry.first.empty(); })) {
    throw InvalidArgument("a metadata entry of the call has no key (CallOptions::metadata)");
  }
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata)
    bytes += key.size() + value.size();
  throw InvalidArgument("a call can have at most " + std::to_string(wire::kMaxMetadata) +
                        " metadata entries of " + std::to_string(wire::kMaxMetadataBytes) +
                        " bytes together, but this one has " + std::to_string(metadata.size()) +
                        " of " + std::to_string(bytes) + " bytes (CallOptions::metadata)");
}

void check(const detail::FunctionKey& function) {
  if (function.name.size() <= kMaxName && function.signature.size() <= kMaxSignature) return;
  throw InvalidArgument("a function's name has at most 4 KiB and its signature 64 KiB; those of " +
                        std::string(function.name.substr(0, 100)) + " are longer");
}

// When a call is made, and until when its caller waits.
struct Times {
  TimePoint now{};
  TimePoint deadline = TimePoint::max();
  std::uint64_t microseconds = 0;  // of the time-out; 0: none
};

Times times_of(Loop& loop, Duration timeout) {
  const TimePoint now = timeout < kCoarseFrom ? loop.now() : loop.coarse_now();
  if (timeout >= TimePoint::max() - now) return {.now = now};
  const auto microseconds = std::chrono::ceil<std::chrono::microseconds>(
      std::max(timeout, Duration(std::chrono::microseconds(1))));
  return {.now = now,
          .deadline = now + timeout,
          .microseconds = static_cast<std::uint64_t>(microseconds.count())};
}

// Keeps with the call what it needs until its reply.
void keep_for_reply(PendingCall& call, detail::OutgoingOptions& options, const Encoder& encoder,
                    const std::shared_ptr<detail::CallProbe>& probe) {
  call.kept = std::move(options.kept);
  if (options.payload_target || probe || encoder.one_use()) {
    CallBelongings& own = call.own();  // with its delivery hooks, once it is taken
    own.payload_target = std::move(options.payload_target);
    own.probe = probe;
  }
  if (!options.detached) {
    if (auto outer = NestedCall::call_around()) call.own().nested.emplace(std::move(outer));
  }
}

}  // namespace

// False when the call in which it was made was cancelled meanwhile. The caller must hold the lock.
bool OutgoingCalls::note_submitted(PendingCall& call, bool cancel_when_dropped) {
  if (as_submitter_.expired()) as_submitter_ = weak_from_this();
  detail::SubmittedCall submitted{as_submitter_, call.id};
  const bool nested = call.belongings && call.belongings->nested;
  const bool goes_on = !nested || call.belongings->nested->follow(submitted);
  call.handler.receiver().submitted(std::move(submitted), cancel_when_dropped);
  return goes_on;
}

// Flattened, because every call that is made goes through it.
[[gnu::flatten]] void OutgoingCalls::submit(const detail::FunctionKey& function,
                                            detail::OutgoingOptions&& options, Encoder& encoder,
                                            detail::ReplyHandler&& handler) {
  const Times times = times_of(*link_->loop(), timeout_of(function, options));
  const auto probe = options.extras ? send_along(function, options, encoder) : nullptr;
  wire::finish_frame(encoder, {.kind = wire::FrameKind::call,
                               .flags = options.wants_reply ? std::uint16_t{0} : wire::kNoReply,
                               .value = times.microseconds});
  link_->check_size(encoder, [&] {
    return "the call of '" + std::string(shown_name(function)) + "' to " + link_->peer_name();
  });
  check(function);
  PendingCall call{.handler = std::move(handler),
                   .deadline = times.deadline,
                   .called_at = times.now,
                   .called_ticks = stopwatch_.ticks(),
                   .bytes = encoder.words().size() * sizeof(Word) + bytes_of(encoder.payloads())};
  if (probe) probe->set_bytes_out(call.bytes);
  if (options.wants_reply) keep_for_reply(call, options, encoder, probe);
  std::uint64_t cancelled = 0;  // an id: the call in which this one is made was cancelled meanwhile
  bool at_once = false;
  Refusal refusal = Refusal::none;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      refusal = Refusal::closed;
    } else if (!credit_.admit(call.bytes, is_of_library(function.name), usage())) {
      refusal = Refusal::overloaded;
    } else {
      call.waited = !link_->is_attached() || link_->output().is_blocked();
      const std::uint32_t number = number_of(function);
      call.function = number;
      wire::set_number(encoder.words(), number);
      PendingCall* pending = nullptr;
      std::uint64_t id = 0;
      if (options.wants_reply) {
        at_once = calls_.size() == 0;
        made_.called(number, call.bytes);
        id = calls_.add(std::move(call));
        pending = calls_.find(id);
      } else {
        id = CallTable::kNotifications + notifications_++;
        made_.notified(number, call.bytes);
      }
      wire::set_id(encoder.words(), id);
      const auto place =
          link_->output().append(encoder.words(), id, false, std::move(encoder.payloads()), probe);
      if (pending != nullptr) {
        pending->place = place;
        if (encoder.one_use()) {
          pending->belongings->delivery_hooks.swap(encoder.delivery_hooks());
          link_->notify_sent(pending->delivery_hooks(), false);
        }
        if (!note_submitted(*pending, options.cancel_when_dropped)) cancelled = id;
        if (times.deadline < timer_at_) arm_timer(times.deadline);
      }
    }
  }
  if (call.handler) {  // it was not taken, or wants no reply
    answer_refused(call, refusal, function, times.now, probe.get());
    if (refusal != Refusal::none) return;
  }
  if (cancelled != 0) cancel_call(cancelled);
  if (FlushScope::defer(link_->connection())) return;
  if (at_once) {
    link_->connection().flush();
  } else {
    link_->connection().flush_soon();
  }
}

// Adds to a call what travels with it beside its arguments. Returns what records the call; null:
// nobody does.
std::shared_ptr<detail::CallProbe> OutgoingCalls::send_along(const detail::FunctionKey& function,
                                                             const detail::OutgoingOptions& options,
                                                             Encoder& encoder) {
  const detail::OutgoingExtras& extras = *options.extras;
  check(extras.metadata);
  const bool recorded = extras.sink != nullptr;
  const bool asks = recorded && extras.sink->wants_record();
  wire::CallContextBody context;
  context.trace = asks ? link_->parts().tracer.next_span(extras.parent, true) : extras.parent;
  if (asks) {
    context.record =
        extras.sink->wants_operators() ? wire::RecordWish::operators : wire::RecordWish::times;
  }
  context.metadata = extras.metadata;
  if (asks || extras.parent.valid() || !extras.metadata.empty())
    wire::add_context(encoder, context);
  if (!recorded) return nullptr;
  CallRecord record;
  record.encoded = link_->loop()->now();
  record.called = extras.started != TimePoint() ? extras.started : record.encoded;
  record.function = shown_name(function);
  const wire::Hello self = link_->host().own_hello();
  record.caller = {
      .node = self.name, .rank = self.rank, .process = process_number(), .thread = thread_number()};
  record.callee.node = link_->peer_name();
  record.span = context.trace;
  record.parent = extras.parent.valid() ? extras.parent.span_number() : 0;
  record.parent_is_external = extras.parent.valid() && !extras.parent_is_call;
  return std::make_shared<detail::CallProbe>(link_->loop(), extras.sink, std::move(record),
                                             options.wants_reply);
}

// Why a closed session takes nothing, if its own node is ending. Null: the connection has broken.
std::exception_ptr OutgoingCalls::end_of_node() const {
  return link_->node() ? link_->node()->refusal() : nullptr;
}

// Answers a call that was not taken, or that wants no reply.
void OutgoingCalls::answer_refused(PendingCall& call, Refusal refusal,
                                   const detail::FunctionKey& function, TimePoint now,
                                   detail::CallProbe* probe) {
  detail::Reply reply;
  if (refusal == Refusal::closed) reply.error = end_of_node();
  if (refusal == Refusal::closed && reply.error == nullptr) {
    const std::string name(shown_name(function));
    const std::string peer = link_->peer_name();
    reply.error = std::make_exception_ptr(NotSent(
        "the connection to " + peer + " has just broken: '" + name + "' was not sent; call again"));
    if (call.kept) reply.error = call.kept->not_sent(std::move(reply.error));
    try {
      std::rethrow_exception(reply.error);
    } catch (Error& error) {  // this call's own, not a copy
      report_refusal(error, name, peer, now);
      if (link_->counters() != nullptr)
        link_->counters()->refused(peer, counted_name(function.name), error, now);
    }
  } else if (refusal == Refusal::overloaded) {
    reply.error = out_of_credit(function, call.bytes, now);
  }
  if (reply.error != nullptr && probe != nullptr) {
    probe->failed(reply.error);
    reply.probe = probe;
  }
  call.handler(reply);
}

std::exception_ptr OutgoingCalls::out_of_credit(const detail::FunctionKey& function,
                                                std::uint64_t bytes, TimePoint now) const {
  CallCredit::Usage used;
  {
    const std::lock_guard lock(mutex_);
    used = usage();
  }
  const std::string name(shown_name(function));
  const std::string peer = link_->peer_name();
  Overloaded error("'" + name + "' was not sent to " + peer + ": its " + std::to_string(bytes) +
                   " bytes and the " + std::to_string(used.of(CallCredit::Of::others)) +
                   " bytes of unfinished calls exceed NodeOptions::limits.max_outstanding_bytes (" +
                   std::to_string(credit_.limit()) +
                   "); call again when some calls have finished, or call wait_for_credit() first");
  report_refusal(error, name, peer, now, Guarantee::bounded_memory);
  if (link_->counters() != nullptr)
    link_->counters()->refused(peer, counted_name(function.name), error, now);
  return std::make_exception_ptr(error);
}

// The number by which the peer knows the function; defines it first, if the peer does not know it.
// The caller must hold the lock.
std::uint32_t OutgoingCalls::number_of(const detail::FunctionKey& function) {
  if (const auto known = numbers_.find(function)) return *known;
  const std::uint32_t number = numbers_.add(function);
  made_.define(numbers_.name_of(number), is_of_library(function.name));
  const auto frame = wire::definition_frame({.number = number,
                                             .name = std::string(function.name),
                                             .signature = std::string(function.signature)});
  link_->output().append(frame, 0, false, {});
  return number;
}

// --- waiting for room

// The caller must hold the lock.
CallCredit::Usage OutgoingCalls::usage() const {
  const HeldBytes& held = link_->output().held();
  return {.unsent = held.calls(), .paused = held.paused(), .pending = calls_.bytes()};
}

Future<void> OutgoingCalls::wait_for_credit(std::uint64_t bytes) {
  CallCredit::Wait wait{.bytes = bytes, .promise = {}, .context = {}};
  auto future = wait.promise.get_future();
  if (const CallContext* const context = CallContext::current()) wait.context = *context;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) credit_.add(std::move(wait));
  }
  if (!wait.promise.pending()) {
    serve_credit();
  } else if (const std::exception_ptr ending = end_of_node()) {
    wait.promise.set_error(ending);
  } else {
    wait.promise.set_error(NotSent("the connection to " + link_->peer_name() +
                                   " has just broken, so there is no credit; ask again"));
  }
  return future;
}

void OutgoingCalls::serve_credit() {
  const auto next = [this]() -> std::optional<CallCredit::Wait> {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    return credit_.next(usage());
  };
  while (auto wait = next()) {
    std::optional<detail::ContextScope> scope;  // the handler that waited continues here
    if (wait->context) scope.emplace(*wait->context);
    wait->promise.set_value();
  }
}

// By the loop, since it runs what continues the waits.
void OutgoingCalls::serve_credit_soon() {
  if (!credit_.has_waits()) return;
  if (serves_credit_.exchange(true, std::memory_order_acq_rel)) return;
  link_->loop()->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->serves_credit_.store(false, std::memory_order_release);
    self->serve_credit();
  });
}

void OutgoingCalls::forget_promised_credit() {
  {
    const std::lock_guard lock(mutex_);
    credit_.forget_promises();
  }
  serve_credit_soon();
}

}  // namespace batchrpc
