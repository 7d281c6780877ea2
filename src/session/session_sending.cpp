#include <algorithm>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/coarse_deadline.hpp"
#include "call/function_table.hpp"
#include "metrics/node_counters.hpp"
#include "session/flush_scope.hpp"
#include "session/session.hpp"

// How a session's own calls are sent.
namespace batchrpc {
namespace {

std::uint64_t bytes_of(const std::vector<Bytes>& payloads) {
  std::uint64_t bytes = 0;
  for (const Bytes& payload : payloads)
    bytes += payload.size();
  return bytes;
}

}  // namespace

// What the peer would refuse is refused here, where the caller can be told.
bool Session::is_too_large(const Encoder& encoder) const {
  const NodeOptions& options = host_->options();
  return encoder.words().size() > options.max_frame_bytes / sizeof(Word) ||
         bytes_of(encoder.payloads()) > options.max_payload_bytes;
}

void Session::refuse_size(const Encoder& encoder, const std::string& what) const {
  const NodeOptions& options = host_->options();
  throw InvalidArgument(
      what + " is too large: " + std::to_string(encoder.words().size() * sizeof(Word)) +
      " bytes and " + std::to_string(bytes_of(encoder.payloads())) +
      " bytes of payloads, the limits are " + std::to_string(options.max_frame_bytes) + " and " +
      std::to_string(options.max_payload_bytes) +
      " (NodeOptions::max_frame_bytes, max_payload_bytes); Bytes and tensors "
      "travel as payloads");
}

void Session::submit(const detail::FunctionKey& function, detail::OutgoingOptions&& options,
                     Encoder& encoder, detail::ReplyHandler&& handler) {
  const Duration timeout = timeout_of(function, options, call_timeout_);
  const TimePoint now = timeout < kCoarseFrom ? loop_->now() : loop_->coarse_now();
  const bool waits_for_ever = timeout >= TimePoint::max() - now;
  const auto microseconds = waits_for_ever ? std::chrono::microseconds(0)
                                           : std::chrono::ceil<std::chrono::microseconds>(std::max(
                                                 timeout, Duration(std::chrono::microseconds(1))));
  auto probe = options.extras ? send_along(function, options, encoder) : nullptr;
  wire::finish_frame(encoder, {.kind = wire::FrameKind::call,
                               .flags = options.wants_reply ? std::uint16_t{0} : wire::kNoReply,
                               .value = static_cast<std::uint64_t>(microseconds.count())});
  check_size(encoder, [&] {
    return "the call of '" + std::string(shown_name(function)) + "' to " + peer_name();
  });
  if (function.name.size() > kMaxName || function.signature.size() > kMaxSignature) {
    throw InvalidArgument(
        "a function's name has at most 4 KiB and its signature 64 KiB, those of " +
        std::string(function.name.substr(0, 100)) + " are longer");
  }
  const std::uint64_t bytes = encoder.words().size() * sizeof(Word) + bytes_of(encoder.payloads());
  PendingCall call{.handler = std::move(handler),
                   .deadline = waits_for_ever ? TimePoint::max() : now + timeout,
                   .called_at = now,
                   .called_ticks = stopwatch_.ticks(),
                   .bytes = bytes};
  if (probe) probe->set_bytes_out(bytes);
  if (options.wants_reply) {
    call.kept = std::move(options.kept);
    if (options.payload_target || probe || encoder.one_use()) {
      CallBelongings& own = call.own();  // with its cargo, once it is taken
      own.payload_target = std::move(options.payload_target);
      own.probe = probe;
    }
    if (!options.detached) {
      if (auto outer = NestedCall::call_around()) call.own().nested.emplace(std::move(outer));
    }
  }
  std::uint64_t cancelled = 0;  // an id: the call in which this one is made was cancelled meanwhile
  bool at_once = false;
  bool refused = false;
  bool overloaded = false;
  {
    const std::lock_guard lock(mutex_);
    refused = closed_;
    overloaded = !refused && !takes_call(function.name, bytes);
    if (!refused && !overloaded) {
      const TimePoint deadline = call.deadline;
      call.waited = !is_attached() || connection_->output().is_blocked_locked();
      const std::uint32_t number = number_of(function);
      call.function = number;
      wire::set_number(encoder.words(), number);
      std::uint64_t id = 0;
      if (options.wants_reply) {
        at_once = calls_.size() == 0;
        id = calls_.add(std::move(call));
        made_.called(number, bytes);
      } else {
        id = CallTable::kNotifications + notifications_++;
        made_.notified(number, bytes);
      }
      wire::set_id(encoder.words(), id);
      const auto place = connection_->output().append_locked(encoder.words(), id, false,
                                                             std::move(encoder.payloads()));
      if (probe) connection_->output().watch_locked(place, probe);
      if (options.wants_reply) {
        PendingCall& pending = *calls_.find(id);
        pending.place = place;
        if (encoder.one_use()) {
          pending.belongings->delivery_hooks.swap(encoder.delivery_hooks());
          notify_delivery_hooks(pending.delivery_hooks(), false);
        }
        if (!note_submitted(pending, options)) cancelled = id;
        if (deadline < timer_at_) arm_timer(deadline);
      }
    }
  }
  if (call.handler) {  // not taken: closed, or no reply wanted
    detail::Reply reply;
    if (refused) {
      const std::string name(shown_name(function));
      NotSent error("the connection to " + peer_name() + " has just broken: '" + name +
                    "' was not sent; call again");
      report_refusal(error, name, peer_name(), now);
      if (counters_ != nullptr)
        counters_->refused(peer_name(), counted_name(function.name), error, now);
      reply.error = std::make_exception_ptr(std::move(error));
    } else if (overloaded) {
      reply.error = out_of_credit(function.name, bytes, now);
    }
    const bool failed = reply.error != nullptr;
    if (failed && probe) {
      probe->failed(reply.error);
      reply.probe = probe.get();
    }
    call.handler(reply);
    if (failed) return;
  }
  if (cancelled != 0) cancel_call(cancelled);
  if (FlushScope::defer(*connection_)) return;
  if (at_once) {
    connection_->flush();
  } else {
    connection_->flush_soon();
  }
}

// The number by which the peer knows the function; tells it first, if it does not.
std::uint32_t Session::number_of(const detail::FunctionKey& function) {
  if (last_number_.first == function.hash && !names_.empty()) return last_number_.second;
  auto at = numbers_.find(function.hash);
  if (at == numbers_.end()) {
    const std::size_t bytes = function.name.size() + function.signature.size();
    if (names_.size() >= kMaxFunctions || defined_bytes_ + bytes > kMaxDefinitions) {
      throw InvalidArgument(
          "over one connection at most 65536 functions are called, with names and signatures of 16 "
          "MiB together: make what differs an argument");
    }
    defined_bytes_ += bytes;
    at = numbers_.emplace(function.hash, static_cast<std::uint32_t>(names_.size())).first;
    names_.emplace_back(shown_name(function));
    made_.define(names_.back(), is_of_library(function.name));
    const auto frame = wire::definition_frame({.number = at->second,
                                               .name = std::string(function.name),
                                               .signature = std::string(function.signature)});
    connection_->output().append_locked(frame, 0, false, {});
  }
  last_number_ = *at;
  return at->second;
}

}  // namespace batchrpc
