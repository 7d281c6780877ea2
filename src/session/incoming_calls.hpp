#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/call/running_call.hpp"
#include "call/incoming_call.hpp"
#include "session/call_budget.hpp"
#include "session/call_order.hpp"
#include "session/call_sink.hpp"
#include "session/in_flight_calls.hpp"
#include "session/not_taken.hpp"
#include "session/payload_assembler.hpp"
#include "session/session_link.hpp"

namespace batchrpc {

/// The calls that the peer makes over one session, from their frames to their replies. Hands each
/// call to the node's CallSink. Calls of one ordering key are handed on in the order of their
/// frames. Everything runs on the loop, except the functions of ReplySink, answering() and
/// send_credit(), which are thread-safe. Owned by shared pointers.
class IncomingCalls final : public detail::ReplySink,
                            public std::enable_shared_from_this<IncomingCalls> {
 public:
  explicit IncomingCalls(std::shared_ptr<SessionLink> link);

  /// Sets the session that owns this. Calls that outlive their message keep it alive until they are
  /// answered. Its node waits for them when it ends.
  void belong_to(std::weak_ptr<const void> session) { session_ = std::move(session); }

  /// Counts the memory of the calls in `budget`, with those of the peer's other sessions. Call it
  /// before the first call comes.
  void share(const CallBudget& budget) { budget_ = budget; }
  [[nodiscard]] const CallBudget& budget() const noexcept { return budget_; }

  /// Defines the function that the peer has numbered for its calls. Throws BadMessage.
  void define(const wire::FrameView& frame);
  /// Takes a call that has come complete. Throws BadMessage.
  void take(const wire::FrameView& frame, std::vector<Bytes>& payloads);
  /// Takes a call whose payloads follow; `assembler` waits for them. Throws BadMessage.
  void expect(const wire::FrameView& frame, PayloadAssembler& assembler);
  /// Takes the call after its payloads have come.
  void take_whole(PayloadAssembler::Whole call);
  /// Answers a call that is not taken, of which `bytes` have come. Throws BadMessage.
  void refuse_untaken(const wire::FrameHeader& call, std::uint64_t bytes, NotTaken why);
  /// Drops the call: its payloads will never come.
  void give_up(const PayloadAssembler::Whole& call);

  /// Cancels a call that has come: it may be in line behind an incomplete one, queued, or running.
  void cancel(std::uint64_t call);
  /// Answers the calls that have not begun with `error`. They never will. `coming_in`: the ids of
  /// those whose payloads are still to come.
  void refuse_waiting(const std::exception_ptr& error, const std::vector<std::uint64_t>& coming_in);
  /// Cancels all calls of the peer, including those that have not started: the caller is gone, or
  /// its session has ended. Complete messages that want no reply still run. Ends the first calls
  /// here, and the others soon, so that the loop serves others in between.
  void close();

  /// Notifies the peer whether the payloads of its call may come. The loop sends this soon.
  void send_credit(std::uint64_t call, std::uint64_t credit);

  /// The number of calls that outlive their message and are being answered.
  [[nodiscard]] int answering() const noexcept {
    return answering_.load(std::memory_order_relaxed);
  }
  /// Lists the functions of those calls, each with its count, as far as the names are known. Also
  /// says how many have not begun.
  [[nodiscard]] std::string answering_functions();

  void send_result(std::uint64_t call, Encoder& encoder, detail::CallRecording* recording) override;
  std::uint64_t send_error(std::uint64_t call, const std::exception_ptr& error, bool began,
                           detail::CallRecording* recording) override;
  std::shared_ptr<detail::ReplySink> keep(const detail::Ref<detail::CallState>& call,
                                          bool wants_reply) override;
  void answered(const detail::CallState& call) override;
  void handler_threw(std::string_view function, const std::exception_ptr& error,
                     bool of_notification) override;
  [[nodiscard]] bool is_forked_copy() const noexcept override { return link_->is_forked_copy(); }
  [[nodiscard]] bool is_over(TimePoint deadline) const noexcept override;
  [[nodiscard]] std::shared_ptr<LocalNode> node() const override { return link_->node(); }
  [[nodiscard]] TimePoint now() const noexcept override { return link_->loop()->now(); }

 private:
  [[nodiscard]] bool end_some();
  [[nodiscard]] bool end_one();
  [[nodiscard]] CalledFunction& function_of(const wire::FrameHeader& call);
  [[nodiscard]] static std::optional<CallOrder::Key> ordering_key_of(const CalledFunction& function,
                                                                     const wire::FrameView& frame);
  void run_in_turn(const CallOrder::Key& key);
  void run_late(PayloadAssembler::Whole whole);
  [[nodiscard]] std::optional<TimePoint> deadline_of(const wire::FrameView& frame) const;
  void dispatch(CalledFunction& function, const wire::FrameView& frame,
                std::vector<Bytes>& payloads, std::optional<TimePoint> deadline);
  void dispatch_late(PayloadAssembler::Whole call);
  void hand_over(CalledFunction& function, detail::ArrivedCall&& call);
  [[nodiscard]] bool refuses(const CalledFunction& function, const wire::FrameView& frame,
                             std::uint64_t bytes);
  [[nodiscard]] bool refuses_for_memory(const CalledFunction& function,
                                        const wire::FrameView& frame, std::uint64_t bytes);
  [[nodiscard]] bool refuses_for_replies(const CalledFunction& function,
                                         const wire::FrameView& frame);
  [[nodiscard]] std::exception_ptr no_memory(const CalledFunction& function,
                                             std::uint64_t bytes) const;
  void note_unread(std::uint64_t bytes);
  void let_drop(std::uint64_t notification);
  std::uint64_t refuse(const CalledFunction& function, const wire::FrameView& frame,
                       const std::string& why);
  std::uint64_t refuse(const CalledFunction& function, const wire::FrameHeader& call,
                       std::uint64_t bytes, const std::exception_ptr& error);
  [[nodiscard]] detail::ReceivePlan announce(CalledFunction& function, const wire::FrameView& frame,
                                             std::optional<TimePoint> deadline,
                                             const std::shared_ptr<FlowControl>& gate);
  [[nodiscard]] CallContext context_of(const CalledFunction& function, const wire::FrameView& frame,
                                       std::optional<TimePoint> deadline) const;
  [[nodiscard]] detail::Ref<const detail::CallExtras> extras_of(
      const CalledFunction& function, const wire::FrameView& frame,
      std::shared_ptr<detail::RecordSink> sink) const;
  void add_record(Encoder& encoder, detail::CallRecording& recording) const;
  void send_delivery_hooks(Encoder& encoder);

  const std::shared_ptr<SessionLink> link_;
  std::weak_ptr<const void> session_;
  CallSink& sink_;
  const std::uint64_t reply_limit_;  // NodeOptions::limits.max_outstanding_bytes
  std::vector<std::unique_ptr<CalledFunction>>
      functions_;                  // By number. While a handler waits, more functions may be added.
  std::size_t defined_bytes_ = 0;  // the bytes of their names and signatures
  // The bytes of refusals, and of credits, while the peer had too many replies to read.
  std::uint64_t unread_bytes_ = 0;
  CallBudget budget_;
  CallOrder order_;
  std::set<CallOrder::Key> draining_;  // whose lines go on in a later turn of the loop
  bool caller_gone_ = false;
  InFlightCalls in_flight_;
  std::atomic<int> answering_{0};
};

}  // namespace batchrpc
