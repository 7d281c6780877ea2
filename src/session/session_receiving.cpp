#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "call/coarse_deadline.hpp"
#include "call/function_table.hpp"
#include "session/flush_scope.hpp"
#include "session/session.hpp"

// What a session does with the frames that come in.
namespace batchrpc {
namespace {

// Whether no payload has to be waited for. Empty ones never come.
bool are_there(const wire::FrameView& frame, std::vector<Bytes>& payloads) {
  const auto sizes = frame.payload_sizes;
  if (sizes.empty() || payloads.size() == sizes.size()) return true;
  if (std::any_of(sizes.begin(), sizes.end(), [](std::uint64_t size) { return size > 0; })) {
    return false;
  }
  payloads.resize(sizes.size());
  return true;
}

}  // namespace

void Session::on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) {
  using wire::FrameKind;
  const FrameKind kind = frame.header.kind;
  if (!is_attached()) {
    handle_handshake(frame);
    return;
  }
  note_acknowledged(frame.header);
  if (wire::is_reliable(kind)) {
    std::uint64_t bytes = frame.words.size() * sizeof(Word);
    for (const Bytes& payload : inline_payloads)
      bytes += payload.size();
    count_received(bytes);
  }
  switch (kind) {
    case FrameKind::define:
      handle_define(frame);
      return;
    case FrameKind::call:
      handle_call(frame, inline_payloads);
      return;
    case FrameKind::result:
      handle_result(frame, inline_payloads);
      return;
    case FrameKind::error:
      handle_error(frame);
      return;
    case FrameKind::ping:
      // What is queued will tell as well; so who pings and does not read gathers nothing here.
      if (connection_->output().queued_bytes() == 0) {
        send(wire::plain_frame({.kind = FrameKind::pong, .id = frame.header.id}));
      } else {
        flush();
      }
      return;
    case FrameKind::goodbye:
      goodbye_ = wire::read_goodbye(frame);
      return;
    case FrameKind::cancel:
      handle_cancel(frame.header.id);
      return;
    case FrameKind::credit:
      handle_credit(frame.header);
      return;
    case FrameKind::pong:
      measure(frame.header.id);
      return;
    case FrameKind::acknowledge:  // which its header does
      return;
    case FrameKind::hello:
      throw BadMessage("a second hello");
    case FrameKind::chunk:
      break;  // goes to chunk_target()
  }
  throw BadMessage("a frame of the unknown kind " + std::to_string(static_cast<unsigned>(kind)));
}

void Session::handle_define(const wire::FrameView& frame) {
  wire::Definition definition = wire::read_definition(frame);
  if (definition.number != incoming_.size() || incoming_.size() >= kMaxFunctions) {
    throw BadMessage("function numbers do not come in order");
  }
  if (definition.name.size() > kMaxName || definition.signature.size() > kMaxSignature) {
    throw BadMessage("a function's name or signature is too long");
  }
  incoming_bytes_ += definition.name.size() + definition.signature.size();
  if (incoming_bytes_ > kMaxDefinitions) {
    throw BadMessage("the names and signatures of functions are more than 16 MiB");
  }
  incoming_.push_back(
      calls_of_peer_.define(std::move(definition.name), std::move(definition.signature)));
}

void Session::handle_call(const wire::FrameView& frame, std::vector<Bytes>& payloads) {
  const std::uint32_t number = frame.header.number;
  if (number >= incoming_.size()) throw BadMessage("a call of an undefined function");
  if (!are_there(frame, payloads)) {
    expect_call(frame);
    return;
  }
  if (!order_.empty()) {
    if (const auto key = ordering_key_of(frame); key && order_.has(*key)) {
      detail::own_payloads(payloads);
      order_.append(*key, {.words = {frame.words.begin(), frame.words.end()},
                           .payloads = std::move(payloads),
                           .deadline = deadline_of(frame)});
      if (order_.waiting_bytes() > host_->options().max_payload_bytes) {
        throw BadMessage("too much waits behind a call whose payloads do not come");
      }
      return;
    }
  }
  dispatch(frame, payloads, deadline_of(frame));
}

// The key by which a call starts in order; nothing: it starts when it is there.
std::optional<CallOrder::Key> Session::ordering_key_of(const wire::FrameView& frame) const {
  const CalledFunction& called = incoming_[frame.header.number];
  if (called.ordering_key == nullptr) return std::nullopt;
  try {
    Decoder decoder(frame.segment(), {});
    return called.ordering_key(decoder);
  } catch (const BadMessage&) {  // its function will say so
    return std::nullopt;
  }
}

void Session::run_in_turn(const CallOrder::Key& key) {
  while (auto next = order_.take(key)) {
    dispatch_late(*std::move(next));
  }
}

std::optional<TimePoint> Session::deadline_of(const wire::FrameView& frame) const {
  if (frame.header.value == 0) return std::nullopt;
  constexpr std::uint64_t kLongest = 1'000'000ULL * 60 * 60 * 24 * 365;
  const std::chrono::microseconds left(std::min<std::uint64_t>(frame.header.value, kLongest));
  // Not before the caller's own: what is called from here would end before it, and so on.
  if (left >= kCoarseFrom) return loop_->coarse_now() + loop_->coarse_lag() + left;
  return loop_->now() + left;
}

void Session::dispatch(const wire::FrameView& frame, std::vector<Bytes>& payloads,
                       std::optional<TimePoint> deadline) {
  if (refuses_for_replies(frame)) return;
  detail::CallArguments arguments{.segment = frame.segment(), .payloads = std::move(payloads)};
  detail::IncomingCall call(*this, frame.header.id, (frame.header.flags & wire::kNoReply) == 0,
                            context_of(frame, deadline), arguments);
  hand_over(frame.header.number, call);
}

// To be run, or answered with the reason why not.
void Session::hand_over(std::uint32_t number, detail::IncomingCall& call) {
  calls_of_peer_.take(incoming_[number], call, {.node = node_, .at = connection_->read_at()});
}

void Session::handle_result(const wire::FrameView& frame, std::vector<Bytes>& payloads) {
  if (!are_there(frame, payloads)) {
    expect_result(frame);
    return;
  }
  std::uint64_t bytes = frame.words.size_bytes();
  for (const Bytes& payload : payloads)
    bytes += payload.size();
  std::optional<PendingCall> call = take_answered(frame.header.id, bytes);
  if (!call) return;  // it has timed out
  detail::own_payloads(payloads);
  detail::Reply reply{.error = nullptr, .segment = frame.segment(), .payloads = payloads};
  detail::CallProbe* const probe = call->probe();
  if (probe != nullptr) note_reply(*probe, frame, payloads);
  reply.probe = probe;
  const detail::CurrentNode current(node_);
  call->handler(reply);
  if (probe != nullptr) probe->end();
  keep_pace();
}

void Session::keep_pace() {
  if (pace_.is_due(under_way_)) FlushScope::flush_current();
}

void Session::handle_error(const wire::FrameView& frame) {
  const wire::ErrorBody body = wire::read_error(frame);
  std::optional<PendingCall> call = take_answered(frame.header.id, 0);
  if (!call) return;
  for (const auto& delivery_hooks : call->delivery_hooks()) {
    if (!body.may_have_run) delivery_hooks->taken_back();
  }
  std::shared_ptr<CallDiagnostics> diagnostics;
  {
    const std::lock_guard lock(mutex_);
    made_.received(call->function, frame.words.size_bytes());
    diagnostics = diagnostics_of(*call, true);
  }
  const std::string name = diagnostics->function;
  const auto code = static_cast<ErrorCode>(body.code);
  std::exception_ptr error;
  if (code == ErrorCode::remote_error) {
    error = std::make_exception_ptr(RemoteError(body.message, body.type, peer_name(),
                                                body.function.empty() ? name : body.function,
                                                body.may_have_run));
  } else {
    // Who joins has called no function that he knows of.
    const std::string quoted = "'" + name + "'";
    const bool is_named =
        name.starts_with(kReservedPrefix) || body.message.find(quoted) != std::string::npos;
    const std::string text =
        is_named ? body.message : quoted + " on " + peer_name() + ": " + body.message;
    constexpr std::uint64_t kLongestPause = 1'000'000ULL * 60 * 60;  // an hour, in microseconds
    const std::chrono::microseconds pause(std::min(body.retry_after, kLongestPause));
    error = code == ErrorCode::overloaded
                ? std::make_exception_ptr(Overloaded(text, pause, body.may_have_run))
                : make_error(code, text, body.may_have_run);
  }
  if (detail::CallProbe* const probe = call->probe()) note_reply(*probe, frame, {});
  fail({call->handler, call->function, call->probe()}, std::move(error), std::move(diagnostics),
       Guarantee::none);
  keep_pace();
}

}  // namespace batchrpc
