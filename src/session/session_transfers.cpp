#include <numeric>

#include "batchrpc/base/error.hpp"
#include "session/flow_control.hpp"
#include "session/session.hpp"

// The large payloads of a session's calls: where they go, whether they may come, and what becomes
// of those of which the rest does not.
namespace batchrpc {

// --- of calls of ours

// Whether a call that has ended surely never runs: what is not sent of it never is. By who holds
// the lock.
bool Session::take_back(const PendingCall& call, std::vector<Bytes>& payloads) {
  if (connection_->output().retract_locked(call.place, payloads)) return true;
  if (cut_off(call.id, payloads)) return true;
  notify_cancelled(call.id);
  return false;
}

// Whether the peer had yet to be sent some of a call's payloads. It is not, and forgets the others.
// By who holds the lock.
bool Session::cut_off(std::uint64_t call, std::vector<Bytes>& payloads) {
  if (!connection_->output().cut_off_locked(call, payloads)) return false;
  notify_cancelled(call);
  return true;
}

// By who holds the lock.
void Session::notify_cancelled(std::uint64_t call) {
  const auto frame = wire::plain_frame({.kind = wire::FrameKind::cancel, .id = call});
  connection_->output().append_locked(frame, 0, false, {});
}

// The call that was answered, unless it has ended. Payloads that are still to be sent have nobody
// to go to: its function was not run, or needed none.
std::optional<PendingCall> Session::take_answered(std::uint64_t id, std::uint64_t result_bytes) {
  std::vector<Bytes> payloads;  // destroyed without the lock
  bool cut = false;
  std::optional<PendingCall> call;
  {
    const std::lock_guard lock(mutex_);
    call = calls_.take(id);
    if (call) cut = cut_off(id, payloads);
    if (call && result_bytes > 0) {  // an error is counted by fail()
      const std::uint64_t took = stopwatch_.between(call->called_ticks, connection_->read_at());
      made_.answered(call->function, took, result_bytes);
    }
    under_way_ = calls_.size();
  }
  if (cut) flush();
  serve_credit_soon();
  return call;
}

void Session::handle_credit(const wire::FrameHeader& credit) {
  OutputQueue& output = connection_->output();
  {
    const std::lock_guard lock(mutex_);
    if (credit.value == wire::kNoCredit) {
      const bool waits =
          credit.id >= CallTable::kNotifications || calls_.find(credit.id) != nullptr;
      if (waits) output.pause_locked(credit.id);
      return;
    }
    if (credit.value != wire::kAllCredit) return;  // of a later minor version
    output.resume_locked(credit.id);
  }
  flush();
}

// Makes room for the payloads of a result. They go where the caller wants them.
void Session::expect_result(const wire::FrameView& frame) {
  std::shared_ptr<detail::PayloadTarget> target;
  {
    const std::lock_guard lock(mutex_);
    PendingCall* call = calls_.find(frame.header.id);
    if (call == nullptr) return;  // has ended: its chunks are dropped
    if (call->belongings) target = std::move(call->belongings->payload_target);
  }
  assembler_.begin(frame, std::nullopt, std::move(target));
}

// --- of the peer's

void Session::expect_call(const wire::FrameView& frame) {
  const std::uint64_t id = frame.header.id;
  const auto deadline = deadline_of(frame);
  assembler_.begin(frame, deadline, nullptr);
  if (const auto object = object_of(frame)) order_.reserve(*object, id);
  const auto& sizes = frame.payload_sizes;  // whose sum begin() has checked
  const auto bytes = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  auto gate = std::make_shared<FlowControl>(weak_from_this(), id, bytes);
  detail::ReceivePlan receive_plan = announce(frame, deadline, gate);
  if (receive_plan.held) gate->hold();
  const bool is_shut = gate->is_shut();
  const bool waits = bytes > wire::kEagerBytes;
  if (waits && !is_shut) send_credit(id, wire::kAllCredit);
  if (waits || receive_plan.held) connection_->flush();  // its sender waits for it
  assembler_.receive(id, std::move(receive_plan), is_shut ? std::move(gate) : nullptr);
}

detail::ReceivePlan Session::announce(const wire::FrameView& frame,
                                      std::optional<TimePoint> deadline,
                                      const std::shared_ptr<FlowControl>& gate) {
  Incoming& incoming = incoming_[frame.header.number];
  if (incoming.of_program && host_->refusal()) return {};
  try {
    const CallContext context(*identity_.load(std::memory_order_acquire), deadline);
    const detail::ContextScope scope(context);
    const detail::CurrentNode current(core_);
    Decoder decoder(frame.segment(), {});
    return resolve(incoming)->announce(decoder, gate);
  } catch (...) {  // the call will be told
    return {};
  }
}

void Session::send_credit(std::uint64_t call, std::uint64_t credit) {
  if (host_->is_forked_copy()) return;
  const auto frame =
      wire::plain_frame({.kind = wire::FrameKind::credit, .id = call, .value = credit});
  connection_->output().append(frame, 0, false, {});
  connection_->flush_soon();  // also when the thread goes on computing, or holds a lock of its own
}

std::span<std::byte> Session::chunk_target(const wire::FrameHeader& chunk) {
  if (!is_attached()) throw BadMessage("a chunk before the hello");
  note_acknowledged(chunk);
  const auto room = assembler_.room_for(chunk);
  if (room.empty()) count_received(chunk.value);  // nobody wants it, whether it comes or not
  return room;
}

void Session::on_chunk(const wire::FrameHeader& chunk) {
  count_received(chunk.value);
  auto whole = assembler_.finish(chunk);
  if (!whole) return;
  const wire::FrameView frame = wire::parse_frame(whole->words);
  if (frame.header.kind == wire::FrameKind::result) {
    handle_result(frame, whole->payloads);
    return;
  }
  if (const auto object = object_of(frame)) {
    order_.fill(*object, frame.header.id, std::move(*whole));
    run_in_turn(*object);
  } else {
    dispatch_late(*std::move(whole));
  }
}

}  // namespace batchrpc
