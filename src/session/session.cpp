#include "session/session.hpp"

#include <algorithm>
#include <map>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/function_table.hpp"
#include "session/flush_scope.hpp"

namespace batchrpc {
namespace {

ConnectionLimits limits_of(const NodeOptions& options) {
  ConnectionLimits limits;
  limits.frame_bytes = options.max_frame_bytes;
  return limits;
}

}  // namespace

Session::Session(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
                 std::shared_ptr<WaitContext> context, std::string peer_name, std::uint64_t id)
    : host_(std::move(host)),
      node_(host_->node()),
      loop_(std::move(loop)),
      connection_(
          std::make_shared<Connection>(loop_, std::move(context), limits_of(host_->options()))),
      tracer_(host_->parts().tracer),
      calls_of_peer_(host_->parts().calls),
      counters_(host_->parts().counters),
      stopwatch_(*loop_),
      expected_peer_(std::move(peer_name)),
      small_frame_words_(host_->options().max_frame_bytes / sizeof(Word)),
      call_timeout_(host_->options().call_timeout),
      credit_limit_(host_->options().max_outstanding_bytes),
      id_(id),
      assembler_(host_->options().max_payload_bytes, host_->parts().payload_memory),
      mutex_(connection_->output().mutex()),
      made_(counters_) {
  if (counters_ != nullptr && !expected_peer_.empty()) counters_->name(made_, expected_peer_);
}

Session::~Session() {
  if (timer_ != 0) loop_->cancel(timer_);
}

// --- calls of ours

void Session::arm_timer(TimePoint deadline) {
  if (timer_ != 0) loop_->cancel(timer_);
  timer_at_ = deadline;
  timer_ = loop_->schedule(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->expire_calls();
  });
}

// What is left of calls that have ended, by who holds the lock.
std::vector<Session::EndedCall> Session::end_calls(std::vector<PendingCall> calls,
                                                   std::vector<Bytes>& payloads) {
  std::vector<EndedCall> ended;
  ended.reserve(calls.size());
  for (PendingCall& call : calls) {
    const bool sent = !take_back(call, payloads);
    for (const auto& delivery_hooks : call.delivery_hooks()) {
      if (!sent) delivery_hooks->taken_back();
    }
    ended.push_back({std::move(call.handler), names_[call.function], sent, call.function,
                     diagnostics_of(call, sent), std::move(call.kept), std::move(call.belongings)});
  }
  return ended;
}

void Session::expire_calls() {
  std::vector<Bytes> payloads;  // destroyed without the lock
  std::vector<EndedCall> expired;
  {
    const std::lock_guard lock(mutex_);
    timer_ = 0;
    timer_at_ = TimePoint::max();
    if (closed_) return;
    expired = end_calls(calls_.take_expired(loop_->now()), payloads);
    if (calls_.earliest_deadline() != TimePoint::max()) arm_timer(calls_.earliest_deadline());
  }
  serve_credit_soon();
  connection_->flush();  // the peer is told of those that it has in part
  for (EndedCall& call : expired) {
    fail({call.handler, call.number, call.probe()},
         std::make_exception_ptr(TimedOut(
             "'" + call.function + "' on " + peer_name() + " did not answer in time" +
                 (call.sent ? "; it may have run" : "; it could not be sent, and never ran") +
                 " (CallOptions::timeout, NodeOptions::call_timeout)",
             call.sent)),
         std::move(call.diagnostics), Guarantee::deadline);
  }
}

Session::Failed Session::fail_calls(const MakeError& error, Guarantee guarantee) {
  std::vector<Bytes> payloads;
  std::vector<EndedCall> calls;
  std::array<CreditLine, 2> lines;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    calls = end_calls(calls_.take_all(), payloads);
    lines.swap(credit_lines_);
  }
  Failed failed;
  for (EndedCall& call : calls) {
    ++(call.sent ? failed.left : failed.not_sent);
    fail({call.handler, call.number, call.probe()}, error(call.function, call.sent),
         std::move(call.diagnostics), guarantee);
  }
  for (CreditLine& line : lines) {
    for (CreditWait& wait : line.waits)
      wait.promise.set_error(error(std::string(kCreditWait), false));
  }
  return failed;
}

// --- replies

void Session::send_result(std::uint64_t call, Encoder& encoder, detail::CallRecording* recording) {
  if (host_->is_forked_copy()) return;
  if (recording != nullptr) {
    check_size(encoder, [&] { return "the result for " + peer_name(); });
    add_record(encoder, *recording);
  }
  wire::finish_frame(encoder, {.kind = wire::FrameKind::result, .id = call});
  check_size(encoder, [&] { return "the result for " + peer_name(); });
  std::uint64_t bytes = 0;
  if (recording != nullptr) {
    bytes = encoder.words().size() * sizeof(Word);
    for (const Bytes& payload : encoder.payloads())
      bytes += payload.size();
  }
  if (encoder.one_use()) send_delivery_hooks(encoder);
  connection_->output().append(encoder.words(), call, true, std::move(encoder.payloads()));
  encoder.delivery_hooks().clear();
  if (recording != nullptr) recording->report_own(bytes);  // nothing has failed
  flush();
}

void Session::notify_delivery_hooks(std::span<const std::shared_ptr<DeliveryHook>> all,
                                    bool as_reply) const {
  const auto known = peer();
  for (const auto& delivery_hooks : all)
    delivery_hooks->sent_to(peer_name(), known ? known->incarnation : 0, as_reply);
}

// Frames arrive in order, but payloads later: the cargo of a result goes with the first of them.
void Session::send_delivery_hooks(Encoder& encoder) {
  notify_delivery_hooks(encoder.delivery_hooks(), true);
  if (encoder.payloads().empty()) return;
  struct Owner {
    std::shared_ptr<const void> bytes;
    std::vector<std::shared_ptr<DeliveryHook>> delivery_hooks;
  };
  Bytes& first = encoder.payloads().front();
  first = Bytes(std::make_shared<Owner>(Owner{first.owner(), std::move(encoder.delivery_hooks())}),
                first.span());
  encoder.delivery_hooks().clear();
}

// Returns its bytes.
std::uint64_t Session::send(std::span<const Word> frame) {
  connection_->output().append(frame, 0, false, {});
  flush();
  return frame.size_bytes();
}

void Session::flush() {
  if (!FlushScope::defer(*connection_)) connection_->flush();
}

// --- life and end

int Session::tick() {
  const bool was_silent = silent_ticks_ > 0;
  silent_ticks_ = connection_->take_heard() ? 0 : silent_ticks_ + 1;
  if (was_silent || silent_ticks_ > 0) note_silence();
  if (silent_ticks_ == 0) heard_at_ = loop_->now();
  // Whether it has been heard or not: so its silence is known to have lasted since the last tick.
  send(wire::plain_frame({.kind = wire::FrameKind::ping, .id = ping_id()}));
  connection_->output().trim();
  forget_promised_credit();
  return silent_ticks_;
}

void Session::say_goodbye(ErrorCode code, const std::string& reason) {
  const auto frame =
      wire::goodbye_frame({.code = static_cast<std::uint16_t>(code), .reason = reason});
  if (is_attached()) {
    connection_->output().append(frame, 0, false, {});
  } else {
    connection_->output().append_first(frame);
  }
  close();
}

void Session::close() {
  attached_.store(false, std::memory_order_release);
  connection_->close();
  end_incoming();
}

// Nobody waits for what the peer has called, or for the rest of it; messages that have come as a
// whole, and that want no reply, run as they would have.
void Session::end_incoming() {
  assembler_.clear();
  cancel_incoming();
  for (const CallOrder::Key& key : order_.give_up())
    run_in_turn(key);
}

bool Session::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::shared_ptr<const PeerIdentity> Session::peer() const {
  const auto* const identity = identity_.load(std::memory_order_acquire);
  return identity != nullptr ? *identity : nullptr;
}

void Session::set_peer(std::shared_ptr<const PeerIdentity> peer) {
  const std::lock_guard lock(mutex_);
  if (counters_ != nullptr) counters_->name(made_, peer->name);
  identity_.store(&identities_.emplace_back(std::move(peer)), std::memory_order_release);
}

std::string Session::peer_name() const {
  const auto known = peer();
  if (known) return known->name;
  return expected_peer_.empty() ? connection_->description() : expected_peer_;
}

std::size_t Session::pending_calls() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

namespace {

// "add (3 calls)"
std::vector<std::string> texts_of(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) {
    texts.push_back(name + (count > 1 ? " (" + std::to_string(count) + " calls)" : ""));
  }
  return texts;
}

}  // namespace

std::vector<std::string> Session::pending_functions() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::size_t> counts;
  calls_.for_each([&](const PendingCall& call) { ++counts[names_[call.function]]; });
  return texts_of(counts);
}

std::string Session::answering_functions() {
  std::map<std::string, std::size_t> counts;
  std::size_t waiting = 0;
  for (const auto& call : kept_.all()) {
    if (call->waits()) ++waiting;
    if (const auto function = call->function()) ++counts[function->shown];
  }
  std::string text;
  for (const std::string& function : texts_of(counts))
    text += (text.empty() ? "" : ", ") + function;
  if (waiting > 0)
    text +=
        "; of these " + std::to_string(waiting) + (waiting == 1 ? " has" : " have") + " not begun";
  return text;
}

}  // namespace batchrpc
