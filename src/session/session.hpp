#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "metrics/node_counters.hpp"
#include "session/call_order.hpp"
#include "session/call_table.hpp"
#include "session/connection.hpp"
#include "session/connection_log.hpp"
#include "session/in_flight_calls.hpp"
#include "session/log_limits.hpp"
#include "session/payload_assembler.hpp"
#include "session/session_host.hpp"
#include "session/window_pace.hpp"

namespace batchrpc {

/// How long the name and the signature of a function may be, in bytes.
inline constexpr std::size_t kMaxName = 4096;
inline constexpr std::size_t kMaxSignature = std::size_t{64} * 1024;
/// How many functions one side of a connection may define for its calls, and how many bytes their
/// names and signatures may have together.
inline constexpr std::size_t kMaxFunctions = 65536;
inline constexpr std::size_t kMaxDefinitions = std::size_t{16} << 20;

/// A conversation with a peer: calls and replies in both directions, over one connection after the
/// other. Who made the first one makes the others, too; until there is one, calls wait. Both sides
/// count their frames, so that nothing is lost or comes twice. Calls may be submitted from the
/// start.
class Session final : public FrameSink,
                      public detail::ReplySink,
                      public detail::Submitter,
                      public std::enable_shared_from_this<Session> {
 public:
  /// `id`: of one that this node begins, unique among those; 0 where the peer is to begin it.
  Session(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
          std::shared_ptr<WaitContext> context, std::string peer_name, std::uint64_t id);
  ~Session() override;

  /// Takes the connection that this node has made, the first or another one, or has accepted; says
  /// hello in the first case. On the loop.
  void start(std::unique_ptr<Stream> stream, bool accepted);
  /// Goes on over a connection that the peer has made, and on which it has said `hello`. On the
  /// loop.
  void resume(std::unique_ptr<Stream> stream, const wire::Hello& hello);

  /// Sends a call; `encoder` holds the arguments, and its payloads are moved away. `handler` is
  /// called exactly once, on any thread, never under a lock, perhaps before this returns. Throws
  /// InvalidArgument when the call is beyond a limit.
  void submit(const detail::FunctionKey& function, detail::OutgoingOptions&& options,
              Encoder& encoder, detail::ReplyHandler&& handler);
  /// Ready when a call with so many bytes of arguments would be taken: see Node.
  [[nodiscard]] Future<void> wait_for_credit(std::uint64_t bytes);

  /// Takes a call of ours back: its handler gets Cancelled, in here, and the peer is told. False
  /// when it has ended.
  bool cancel_call(std::uint64_t id) noexcept override;
  /// The caller is gone, or its session has ended: cancels all of its calls here, also those that
  /// are yet to start. On the loop.
  void cancel_incoming();

  /// From here on a deadline may be set by the coarse clock: that is within a hundredth of what was
  /// asked.
  static constexpr Duration kCoarseFrom = std::chrono::seconds(1);
  /// The function that a wait for credit is told of as.
  static constexpr std::string_view kCreditWait = "wait_for_credit()";
  /// Ends the calls that wait, by that promise: `error` makes the error, from the function's name
  /// and whether the call may have been sent.
  using MakeError = std::function<std::exception_ptr(const std::string& function, bool sent)>;
  /// How many of them ended how.
  struct Failed {
    std::size_t left = 0;
    std::size_t not_sent = 0;
  };
  Failed fail_calls(const MakeError& error, Guarantee guarantee);

  /// Closes without a word: what the peer has sent in part never comes. On the loop.
  void close();
  /// Says goodbye and closes. On the loop.
  void say_goodbye(ErrorCode code, const std::string& reason);

  /// Once a ping interval, on the loop, while open: asks the peer whether it lives; returns for how
  /// many intervals it has been silent.
  int tick();

  /// For how many intervals it had been silent at the last tick(). On the loop.
  [[nodiscard]] int silent_ticks() const noexcept { return silent_ticks_; }

  /// Whether the peer has once said hello; and whether there is a connection now on which it has.
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_attached() const noexcept {
    return attached_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// The address at which the peer was last reached; empty: it came by itself. On the loop.
  [[nodiscard]] const std::string& dialled() const noexcept { return dialled_; }
  void set_dialled(std::string address) { dialled_ = std::move(address); }
  /// When the last connection broke, and how many frames were sent again over the next one. On the
  /// loop.
  [[nodiscard]] TimePoint broke_at() const noexcept { return broke_at_; }
  [[nodiscard]] std::uint64_t sent_again() const noexcept { return sent_again_; }
  /// A try to connect was in vain. On the loop.
  void note_failed(const std::string& why);
  /// Smoothed, of the pings that were answered; zero: none was.
  [[nodiscard]] Duration round_trip() const noexcept {
    return Duration(round_trip_.load(std::memory_order_relaxed));
  }
  /// Whether the last connection was of use: it has brought more than the handshake, or has held
  /// for as long as makes a peer dead. On the loop.
  [[nodiscard]] bool has_made_progress() const;
  /// Since when nothing was heard, as far as the pings tell. For as long as this node did nothing,
  /// no ping could be answered: that does not count. On the loop.
  [[nodiscard]] TimePoint heard_at() const;
  [[nodiscard]] bool is_closed() const;
  [[nodiscard]] bool was_accepted() const noexcept { return accepted_; }
  /// The peer's goodbye, if it has said one.
  [[nodiscard]] const std::optional<wire::Goodbye>& goodbye() const noexcept { return goodbye_; }
  /// Whether it was closed for what the peer sent. On the loop.
  [[nodiscard]] bool broke_protocol() const noexcept { return broke_protocol_; }
  /// Null before the handshake.
  [[nodiscard]] std::shared_ptr<const PeerIdentity> peer() const;
  void set_peer(std::shared_ptr<const PeerIdentity> peer);
  [[nodiscard]] std::size_t pending_calls() const;
  /// Whether the peer has left more untaken than NodeOptions::max_outstanding_bytes.
  [[nodiscard]] bool is_behind() const;
  /// The names of the functions whose replies are waited for, each with its count.
  [[nodiscard]] std::vector<std::string> pending_functions() const;
  /// How many calls of the peer are being answered: those that outlive their message.
  [[nodiscard]] int answering() const noexcept {
    return answering_.load(std::memory_order_relaxed);
  }
  /// The names of the functions of those, each with its count, as far as they are known; and how
  /// many have not begun.
  [[nodiscard]] std::string answering_functions();
  /// Answers those that have not begun with `error`: they never will.
  void refuse_waiting(const std::exception_ptr& error);
  [[nodiscard]] Connection& connection() const noexcept { return *connection_; }

  void on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) override;
  std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) override;
  void on_chunk(const wire::FrameHeader& chunk) override;
  void on_closed(const std::string& why, bool protocol_error) override;

  void send_result(std::uint64_t call, Encoder& encoder, detail::CallRecording* recording) override;
  std::uint64_t send_error(std::uint64_t call, const std::exception_ptr& error, bool began,
                           detail::CallRecording* recording) override;
  std::shared_ptr<detail::ReplySink> keep(const detail::Ref<detail::CallState>& call,
                                          bool wants_reply) override;
  void answered(const detail::CallState& call) override;
  [[nodiscard]] bool is_forked_copy() const noexcept override;
  [[nodiscard]] bool is_over(TimePoint deadline) const noexcept override;
  [[nodiscard]] TimePoint now() const noexcept override { return loop_->now(); }

  /// Tells the peer whether the payloads of its call may come: soon, by the loop. Thread-safe.
  void send_credit(std::uint64_t call, std::uint64_t credit);

 private:
  // A function of ours as the peer calls it.
  struct Incoming {
    std::string name;
    std::string signature;
    bool of_program = false;  // not of the library itself
    bool of_object = false;   // and its first argument names the object that it is about
    std::weak_ptr<detail::ExposedFunction> function;
  };

  // Who waits for room to call; and for whom of those who waited it is kept.
  enum class CreditOf : std::uint8_t { handlers, others };
  struct CreditWait {
    std::uint64_t bytes = 0;
    Promise<void> promise;
    std::optional<CallContext> context;  // of the handler that waits
  };
  struct CreditLine {
    std::deque<CreditWait> waits;
    std::uint64_t promised = 0;
  };

  [[nodiscard]] CreditLine& line_of(CreditOf whose) {
    return credit_lines_[static_cast<std::size_t>(whose)];
  }
  [[nodiscard]] bool has_credit(std::uint64_t bytes, CreditOf whose,
                                std::uint64_t promised = 0) const;
  [[nodiscard]] bool takes_call(std::string_view function, std::uint64_t bytes);
  [[nodiscard]] std::exception_ptr out_of_credit(std::string_view function, std::uint64_t bytes,
                                                 TimePoint now) const;
  [[nodiscard]] std::optional<CreditWait> next_with_credit();
  void serve_credit();
  void serve_credit_soon();
  void forget_promised_credit();
  [[nodiscard]] bool refuses_for_replies(const wire::FrameView& frame);

  void notify_delivery_hooks(std::span<const std::shared_ptr<DeliveryHook>> all,
                             bool as_reply) const;
  void send_delivery_hooks(Encoder& encoder);
  void handle_handshake(const wire::FrameView& frame);
  void handle_hello(const wire::Hello& hello);
  void handle_resumed(const wire::Hello& hello);
  [[nodiscard]] bool may_return() const;
  void end(const std::string& why, bool protocol_error);
  void end_incoming();
  [[nodiscard]] wire::Hello own_hello() const;
  void attached();
  void count_received(std::uint64_t bytes);
  void note_acknowledged(const wire::FrameHeader& header);
  void handle_define(const wire::FrameView& frame);
  void handle_call(const wire::FrameView& frame, std::vector<Bytes>& payloads);
  void handle_result(const wire::FrameView& frame, std::vector<Bytes>& payloads);
  void handle_error(const wire::FrameView& frame);
  void keep_pace();
  void handle_credit(const wire::FrameHeader& credit);
  void handle_cancel(std::uint64_t call);
  [[nodiscard]] std::optional<PendingCall> take_answered(std::uint64_t id,
                                                         std::uint64_t result_bytes);
  [[nodiscard]] std::optional<TimePoint> deadline_of(const wire::FrameView& frame) const;
  [[nodiscard]] CallContext context_of(const wire::FrameView& frame,
                                       std::optional<TimePoint> deadline) const;
  [[nodiscard]] detail::Ref<const detail::CallExtras> extras_of(
      const wire::FrameView& frame, std::shared_ptr<detail::RecordSink> sink) const;
  [[nodiscard]] std::shared_ptr<detail::CallProbe> send_along(
      const detail::FunctionKey& function, const detail::OutgoingOptions& options,
      Encoder& encoder);
  void note_reply(detail::CallProbe& probe, const wire::FrameView& frame,
                  const std::vector<Bytes>& payloads) const;
  void add_record(Encoder& encoder, detail::CallRecording& recording) const;
  void dispatch(const wire::FrameView& frame, std::vector<Bytes>& payloads,
                std::optional<TimePoint> deadline);
  void dispatch_late(PayloadAssembler::Whole call);
  [[nodiscard]] bool note_submitted(PendingCall& call, const detail::OutgoingOptions& options);
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> resolve(Incoming& incoming) const;
  [[nodiscard]] FunctionCounters& counters_of(const Incoming& incoming) const;
  void run_function(std::uint32_t number, detail::IncomingCall& call);
  [[nodiscard]] std::optional<CallOrder::Object> object_of(const wire::FrameView& frame) const;
  void run_in_turn(const CallOrder::Object& object);
  void expect_call(const wire::FrameView& frame);
  void expect_result(const wire::FrameView& frame);
  [[nodiscard]] detail::ReceivePlan announce(const wire::FrameView& frame,
                                             std::optional<TimePoint> deadline,
                                             const std::shared_ptr<FlowControl>& gate);
  void refuse(const Error& error);
  // `what()` names what is too large.
  template <class What>
  void check_size(const Encoder& encoder, const What& what) const {
    if (encoder.payloads().empty() && encoder.words().size() <= small_frame_words_) return;
    if (is_too_large(encoder)) refuse_size(encoder, what());
  }
  [[nodiscard]] bool is_too_large(const Encoder& encoder) const;
  [[noreturn]] void refuse_size(const Encoder& encoder, const std::string& what) const;
  std::uint64_t send(std::span<const Word> frame);
  void flush();
  std::uint32_t number_of(const detail::FunctionKey& function);
  struct EndedCall {
    detail::ReplyHandler handler;
    std::string function;
    bool sent;
    std::uint32_t number;
    std::shared_ptr<CallDiagnostics> diagnostics;
    // Destroyed without the lock:
    std::shared_ptr<const void> kept{};
    std::unique_ptr<CallBelongings> belongings{};

    [[nodiscard]] detail::CallProbe* probe() const noexcept {
      return belongings ? belongings->probe.get() : nullptr;
    }
  };
  [[nodiscard]] std::vector<EndedCall> end_calls(std::vector<PendingCall> calls,
                                                 std::vector<Bytes>& payloads);
  bool take_back(const PendingCall& call, std::vector<Bytes>& payloads);
  void notify_cancelled(std::uint64_t call);
  bool cut_off(std::uint64_t call, std::vector<Bytes>& payloads);
  void arm_timer(TimePoint deadline);
  void expire_calls();
  [[nodiscard]] std::shared_ptr<CallDiagnostics> diagnostics_of(const PendingCall& call,
                                                                bool left) const;
  // Whom to tell of the end of a call, and what counts and records it.
  struct CallEnd {
    detail::ReplyHandler& handler;
    std::uint32_t function;
    detail::CallProbe* probe;
  };
  void fail(const CallEnd& call, std::exception_ptr error,
            std::shared_ptr<CallDiagnostics> diagnostics, Guarantee guarantee);
  void note(ConnectionEvent event);
  void note_broken(const std::string& why);
  void note_silence();
  [[nodiscard]] std::uint64_t ping_id() const;
  void measure(std::uint64_t pong);
  std::string peer_name() const;

  const std::shared_ptr<SessionHost> host_;
  const std::shared_ptr<NodeCore> core_;
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Connection> connection_;
  CallTracer& tracer_;
  const std::shared_ptr<AdmissionQueue> queue_;  // null: no call waits for its turn
  NodeCounters* const counters_;                 // null: nobody counts
  const Stopwatch stopwatch_;
  const std::string expected_peer_;
  const std::size_t small_frame_words_;  // surely within the limits
  const Duration call_timeout_;          // where a call says none
  const std::uint64_t credit_limit_;     // NodeOptions::max_outstanding_bytes
  std::uint64_t id_;                     // on the loop
  std::atomic<bool> open_{false};
  std::atomic<bool> attached_{false};
  bool accepted_ = false;
  bool broke_protocol_ = false;
  std::uint64_t received_ = 0;           // reliable frames
  std::uint64_t received_at_start_ = 0;  // of this connection
  std::uint64_t unacknowledged_ = 0;     // bytes of those since one was last acknowledged
  std::uint64_t acknowledged_ = 0;       // frames of ours, by the peer
  TimePoint attached_at_ = TimePoint::max();
  TimePoint heard_at_{};
  TimePoint broke_at_{};
  std::uint64_t sent_again_ = 0;
  std::atomic<Duration::rep> round_trip_{0};
  std::string dialled_;
  std::optional<wire::Goodbye> goodbye_;
  int silent_ticks_ = 0;
  // Who the peer said that it is, the latest last; calls borrow it, and so they all stay.
  std::deque<std::shared_ptr<const PeerIdentity>> identities_;
  std::atomic<const std::shared_ptr<const PeerIdentity>*> identity_{nullptr};
  std::vector<Incoming> incoming_;
  std::size_t incoming_bytes_ = 0;   // of their names and signatures
  std::uint64_t refused_bytes_ = 0;  // of errors, since a call was last let in
  std::atomic<bool> waits_for_credit_{false};
  std::atomic<bool> serves_credit_{false};  // soon
  std::atomic<int> answering_{0};
  PayloadAssembler assembler_;
  CallOrder order_;
  InFlightCalls kept_;
  bool caller_gone_ = false;
  WindowPace pace_;
  std::size_t under_way_ = 0;  // calls, when the last answer came

  std::mutex& mutex_;  // the output queue's; guards what follows
  CallTable calls_;
  CallsMade made_;
  detail::SubmitterNumber submitter_number_;  // from the first call on
  ConnectionLog log_;
  std::uint64_t notifications_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by FunctionKey::hash
  std::pair<std::uint64_t, std::uint32_t> last_number_{};     // an entry of these
  std::vector<std::string> names_;                            // by number
  std::size_t defined_bytes_ = 0;                             // of names and signatures
  TimerId timer_ = 0;
  TimePoint timer_at_ = TimePoint::max();
  std::array<CreditLine, 2> credit_lines_;
  bool closed_ = false;
};

}  // namespace batchrpc
