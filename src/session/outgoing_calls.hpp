#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"
#include "metrics/node_counters.hpp"
#include "session/call_credit.hpp"
#include "session/call_table.hpp"
#include "session/function_numbers.hpp"
#include "session/not_taken.hpp"
#include "session/session_link.hpp"
#include "session/window_pace.hpp"
#include "transport/stopwatch.hpp"

namespace batchrpc {

/// The calls that this node makes over one session, from submit() to their reply. Each call's
/// handler is called exactly once, on any thread, never under a lock. Thread-safe, but for what
/// says that it runs on the loop. Owned by shared pointers.
class OutgoingCalls final : public detail::Submitter,
                            public std::enable_shared_from_this<OutgoingCalls> {
 public:
  explicit OutgoingCalls(std::shared_ptr<SessionLink> link);
  ~OutgoingCalls();
  OutgoingCalls(const OutgoingCalls&) = delete;
  OutgoingCalls& operator=(const OutgoingCalls&) = delete;

  /// Sends a call; `encoder` holds the arguments, and its payloads are moved away. `handler` may be
  /// called before this returns. Throws InvalidArgument when the call is beyond a limit.
  void submit(const detail::FunctionKey& function, detail::OutgoingOptions&& options,
              Encoder& encoder, detail::ReplyHandler&& handler);
  /// Cancels a call: its handler gets Cancelled, in here, and the peer is notified. False when the
  /// call has ended.
  bool cancel_call(std::uint64_t id) noexcept override;

  /// Ready when a call with so many bytes of arguments would be admitted: see Node.
  [[nodiscard]] Future<void> wait_for_credit(std::uint64_t bytes);
  /// Has the loop complete the waits that there is room for.
  void serve_credit_soon();
  /// Room that was promised to waits which have made no call belongs to everybody again.
  void forget_promised_credit();

  /// A reply has come as a whole. On the loop.
  void take_result(const wire::FrameView& frame, std::vector<Bytes>& payloads);
  void take_error(const wire::FrameView& frame);
  /// The reply to a call is dropped, of which `bytes` have come: fails the call. On the loop.
  void lose_reply(std::uint64_t call, std::uint64_t bytes, NotTaken why);
  /// Where the caller wants the payloads of a result, which follow; null: anywhere. Nothing: the
  /// call has ended, and nobody wants them. On the loop.
  [[nodiscard]] std::optional<std::shared_ptr<detail::PayloadTarget>> target_of_result(
      std::uint64_t call);
  /// The peer wants the payloads of a call, or wants them later. On the loop.
  void take_credit(const wire::FrameHeader& credit);

  /// Takes no more calls.
  void close();
  [[nodiscard]] bool is_closed() const;
  /// Makes the error of a call from its function's name and whether it may have been sent.
  using MakeError = std::function<std::exception_ptr(const std::string& function, bool sent)>;
  static constexpr std::string_view kCreditWait = "wait_for_credit()";
  /// How many calls ended how.
  struct Failed {
    std::size_t left = 0;
    std::size_t not_sent = 0;
  };
  /// Closes, and fails the calls and waits that are left, by that promise. The function of a wait
  /// is kCreditWait.
  Failed fail_all(const MakeError& error, Guarantee guarantee);

  /// The peer's name for the counters.
  void set_peer_name(const std::string& peer);
  [[nodiscard]] std::size_t pending() const;
  /// The names of the functions whose replies are waited for, each with its count.
  [[nodiscard]] std::vector<std::string> pending_functions() const;

 private:
  // A call that has ended without a reply, and what is destroyed without the lock.
  struct Ended {
    detail::ReplyHandler handler;
    std::uint32_t function = 0;
    bool sent = false;
    std::shared_ptr<CallDiagnostics> diagnostics;
    std::shared_ptr<const detail::KeptByCall> kept;
    std::unique_ptr<CallBelongings> belongings;

    [[nodiscard]] const std::string& name() const noexcept { return diagnostics->function; }
  };
  // Why a call was not taken.
  enum class Refusal : std::uint8_t { none, closed, overloaded };

  [[nodiscard]] std::shared_ptr<detail::CallProbe> send_along(
      const detail::FunctionKey& function, const detail::OutgoingOptions& options,
      Encoder& encoder);
  bool note_submitted(PendingCall& call, bool cancel_when_dropped);
  [[nodiscard]] std::exception_ptr end_of_node() const;
  void answer_refused(PendingCall& call, Refusal refusal, const detail::FunctionKey& function,
                      TimePoint now, detail::CallProbe* probe);
  [[nodiscard]] std::exception_ptr out_of_credit(const detail::FunctionKey& function,
                                                 std::uint64_t bytes, TimePoint now) const;
  [[nodiscard]] CallCredit::Usage usage() const;
  void serve_credit();
  std::uint32_t number_of(const detail::FunctionKey& function);

  [[nodiscard]] std::optional<PendingCall> take_answered(std::uint64_t id,
                                                         std::uint64_t result_bytes);
  void note_reply(detail::CallProbe& probe, const wire::FrameView& frame,
                  const std::vector<Bytes>& payloads) const;
  [[nodiscard]] std::exception_ptr error_of(const wire::ErrorBody& body,
                                            const std::string& function) const;
  void keep_pace();

  bool end_cancelled(std::uint64_t id);
  [[nodiscard]] std::vector<Ended> end_calls(std::vector<PendingCall> calls,
                                             std::vector<Bytes>& payloads);
  bool take_back(const PendingCall& call, std::vector<Bytes>& payloads);
  void notify_cancelled(std::uint64_t call);
  bool cut_off(std::uint64_t call, std::vector<Bytes>& payloads);
  void arm_timer(TimePoint deadline);
  void expire();
  [[nodiscard]] std::shared_ptr<CallDiagnostics> diagnostics_of(const PendingCall& call,
                                                                bool left) const;
  void fail(detail::ReplyHandler& handler, std::uint32_t function, detail::CallProbe* probe,
            std::exception_ptr error, std::shared_ptr<CallDiagnostics> diagnostics,
            Guarantee guarantee);
  void fail(Ended& call, std::exception_ptr error, Guarantee guarantee);

  const std::shared_ptr<SessionLink> link_;
  const Stopwatch stopwatch_;
  std::atomic<bool> serves_credit_{false};  // soon
  WindowPace pace_;                         // on the loop
  std::size_t under_way_ = 0;               // calls, when the last reply came; on the loop

  mutable std::mutex mutex_;  // guards what follows; locked before the output queue's
  CallTable calls_;
  CallsMade made_;
  CallCredit credit_;
  FunctionNumbers numbers_;
  std::weak_ptr<detail::Submitter> as_submitter_;  // from the first call on
  std::uint64_t notifications_ = 0;
  TimerId timer_ = 0;
  TimePoint timer_at_ = TimePoint::max();
  bool closed_ = false;
};

}  // namespace batchrpc
