#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_state.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/wire/codec.hpp"
#include "batchrpc/wire/envelope.hpp"
#include "batchrpc/wire/signature.hpp"

/// The two ends of a call, below the typed functions: what the templates of node.hpp hand to the
/// compiled library.
namespace batchrpc {
class FunctionCounters;
class LocalNode;
}  // namespace batchrpc

namespace batchrpc::detail {

/// Names a remote function on the wire. The views outlive the call of the function that they are
/// given to.
struct FunctionKey {
  std::string_view name;
  std::string_view signature;
  std::uint64_t hash = 0;    ///< of both
  std::string_view shown{};  ///< the name as people know it; empty: by `name` (shown_name)
};

constexpr FunctionKey function_key(std::string_view name, std::string_view signature,
                                   std::string_view shown = {}) {
  return {name, signature, signature_hash(name) * 31 + signature_hash(signature), shown};
}

class CallProbe;
class CallRecording;

/// What came back: an error, or a body to decode at kBodyPointer - 1 of the segment. Valid during
/// the handler only.
struct Reply {
  std::exception_ptr error;
  std::span<const Word> segment;
  std::span<const Bytes> payloads;
  CallProbe* probe = nullptr;  ///< of a call that is recorded
};

/// The caller is about to learn what became of its call, which is recorded: of several times the
/// first counts. `error`: what the reply turned out to be, if not a result.
BATCHRPC_EXPORT void end_record(CallProbe& probe, const std::exception_ptr& error) noexcept;

/// Who has submitted calls, and can take them back.
class Submitter {
 public:
  /// The call's receiver gets Cancelled, in here. False when it has ended. Thread-safe.
  virtual bool cancel_call(std::uint64_t id) noexcept = 0;

 protected:
  ~Submitter() = default;
};

/// A call that was submitted: who can take it back, and as what.
struct SubmittedCall {
  std::weak_ptr<Submitter> submitter{};
  std::uint64_t id = 0;

  /// Takes it back: its receiver gets Cancelled, in here. False when it has ended.
  BATCHRPC_EXPORT bool cancel() const noexcept;
};

/// Waits for the reply to one call.
class ReplyReceiver {
 public:
  /// Called once; the receiver may be gone afterwards.
  virtual void receive(Reply& reply) noexcept = 0;
  /// The call is submitted, and waits for its reply. Before receive(), at most once, under a lock.
  virtual void submitted(SubmittedCall /*call*/, bool /*cancel_when_dropped*/) noexcept {}

 protected:
  ~ReplyReceiver() = default;
};

/// The duty to tell a receiver what became of its call. One that is dropped says BrokenPromise.
class ReplyHandler {
 public:
  ReplyHandler() noexcept = default;
  explicit ReplyHandler(ReplyReceiver& receiver) noexcept : receiver_(&receiver) {}
  ReplyHandler(ReplyHandler&& other) noexcept
      : receiver_(std::exchange(other.receiver_, nullptr)) {}
  ReplyHandler& operator=(ReplyHandler&& other) noexcept {
    std::swap(receiver_, other.receiver_);
    return *this;
  }
  ~ReplyHandler() {
    if (receiver_ != nullptr) abandon();
  }

  explicit operator bool() const noexcept { return receiver_ != nullptr; }
  void operator()(Reply& reply) noexcept { std::exchange(receiver_, nullptr)->receive(reply); }
  [[nodiscard]] ReplyReceiver& receiver() const noexcept { return *receiver_; }

 private:
  BATCHRPC_EXPORT void abandon() noexcept;

  ReplyReceiver* receiver_ = nullptr;
};

/// Chooses the memory for payload `index`, of `size` bytes, of a reply or call. Empty, or of
/// another size, or what is thrown: the library allocates. Called at most once a payload, before
/// its bytes are read, on the driving thread, which it does not keep waiting. The payload owns it.
using PayloadTarget = UniqueFunction<std::span<std::byte>(std::size_t index, std::size_t size)>;

struct OutgoingOptions {
  Duration timeout{};  ///< zero: the node's default; Duration::max(): none
  bool wants_reply = true;
  bool detached = true;  ///< see CallOptions, where the default is another
  bool cancel_when_dropped = false;
  RetryOptions retry{};  ///< of a call that wants a reply
  std::unique_ptr<PayloadTarget> payload_target;
  std::shared_ptr<const void> kept;        ///< until the call has ended, if it wants a reply
  std::shared_ptr<OutgoingExtras> extras;  ///< null: nothing goes with it
};

/// Takes the replies of calls back to the peer. Thread-safe.
class BATCHRPC_EXPORT ReplySink {
 public:
  virtual ~ReplySink();
  /// `encoder` holds kEnvelopeWords and a body; its payloads are moved away. Throws
  /// InvalidArgument, with nothing sent, when the result is beyond a limit.
  /// What was recorded of the call goes along, unless `recording` is null.
  virtual void send_result(std::uint64_t call, Encoder& encoder, CallRecording* recording) = 0;
  /// The same; returns how many bytes that is. `began`: the function had begun to run.
  virtual std::uint64_t send_error(std::uint64_t call, const std::exception_ptr& error, bool began,
                                   CallRecording* recording) = 0;
  /// For a call that outlives its message: itself, shared. The call counts as being answered until
  /// answered(), which follows its reply if it wanted one; so long it may be cancelled, if it does.
  virtual std::shared_ptr<ReplySink> keep(const Ref<CallState>& call, bool wants_reply) = 0;
  virtual void answered(const CallState& call) = 0;
  /// Whether this is a copy of it in a child of a fork(), where threads of the parent may have its
  /// locks.
  [[nodiscard]] virtual bool is_forked_copy() const noexcept = 0;
  [[nodiscard]] virtual bool is_over(TimePoint deadline) const noexcept = 0;
  /// For what is remembered of the calls.
  [[nodiscard]] virtual TimePoint now() const noexcept;
};

/// Copies those that are views of a buffer that is read into next, into memory of their own.
BATCHRPC_EXPORT void own_payloads(std::vector<Bytes>& payloads);

/// Thrown by the library's own functions in place of `error`: what was to be called did not begin.
struct DidNotRun {
  std::exception_ptr error;
};

/// What a call takes up at its node until it is answered; destroyed then
/// (NodeOptions::call_limits).
class BATCHRPC_EXPORT AdmissionPermit {
 public:
  AdmissionPermit() = default;
  virtual ~AdmissionPermit();
  AdmissionPermit(const AdmissionPermit&) = delete;
  AdmissionPermit& operator=(const AdmissionPermit&) = delete;

  bool ran = false;  ///< the call has begun to run
};

/// A call that has come in: its arguments, and the duty to answer it exactly once. One that is
/// destroyed unanswered is answered with BrokenPromise. Movable; used by one thread at a time.
class BATCHRPC_EXPORT IncomingCall {
 public:
  /// Borrows `arguments`, until it is kept.
  IncomingCall(ReplySink& sink, std::uint64_t id, bool wants_reply, CallContext context,
               CallArguments& arguments) noexcept
      : sink_(&sink),
        id_(id),
        wants_reply_(wants_reply),
        context_(std::move(context)),
        arguments_(&arguments) {}
  IncomingCall(IncomingCall&& other) noexcept
      : sink_(std::exchange(other.sink_, nullptr)),
        id_(other.id_),
        wants_reply_(other.wants_reply_),
        waited_(other.waited_),
        begun_(other.begun_),
        context_(std::move(other.context_)),
        arguments_(std::exchange(other.arguments_, nullptr)),
        counters_(other.counters_),
        arrived_(other.arrived_),
        lock_(std::move(other.lock_)),
        place_(std::move(other.place_)) {}
  IncomingCall& operator=(IncomingCall&&) = delete;
  ~IncomingCall() {
    if (sink_ != nullptr) break_promise();
    if (context_.call()) context_.call()->let_go();
  }

  /// Makes it independent of the message that it came in, so that it may be kept. `function`, if
  /// that is known, is the one that will run.
  void keep(std::shared_ptr<ExposedFunction> function = nullptr);
  /// It has waited since its deadline was known, so that this may have passed.
  void set_waited() noexcept { waited_ = true; }
  /// By the function, before it does anything with the call. False when the call must not run: it
  /// was cancelled, or its time is over, and has been dealt with.
  [[nodiscard]] bool begin() {
    begun_ = true;
    if (context_.extras()) note_begun();
    return !waited_ || begin_late();
  }

  // For who runs it, from begin() on:

  /// As keep() does, but of the payloads alone: what is decoded may then be kept.
  void own_payloads() { detail::own_payloads(arguments_->payloads); }
  /// What came beside the message. Before keep() and own_payloads(), small ones are views of the
  /// buffer that they were read into, without an owner; they may be put elsewhere.
  [[nodiscard]] std::vector<Bytes>& payloads() noexcept { return arguments_->payloads; }
  /// What its function kept when it was announced (ReceivePlan::kept); null: it was not.
  [[nodiscard]] std::shared_ptr<void> take_receive_plan() noexcept {
    return std::move(arguments_->receive_plan);
  }
  [[nodiscard]] Decoder arguments() const {
    return Decoder(arguments_->segment, arguments_->payloads);
  }
  /// What the arguments take in memory; 0 while it is kept and has not begun.
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Gives the arguments' memory back; nothing that was decoded as a view may be used any more.
  void drop_arguments() noexcept { *arguments_ = {}; }

  // For who holds it:

  /// Has its end be counted there, once; `arrived`: when it did, by Loop::ticks(); `bytes`: of its
  /// arguments, which may have gone by now.
  void count_by(FunctionCounters& counters, std::uint64_t arrived, std::size_t bytes) noexcept;

  /// Has it hold a lock until it is answered (ExposeOptions::exclusive).
  void hold(AsyncMutex::Guard lock) noexcept { lock_ = std::move(lock); }

  /// What it takes up until it is answered; null: nothing.
  /// @{
  void take(std::unique_ptr<AdmissionPermit> place) noexcept { place_ = std::move(place); }
  [[nodiscard]] AdmissionPermit* place() const noexcept { return place_.get(); }
  /// @}

  /// The call does not run, and is answered with `error`, unless it was cancelled before.
  void refuse(const std::exception_ptr& error);

  [[nodiscard]] const CallContext& context() const noexcept { return context_; }
  [[nodiscard]] bool wants_reply() const noexcept { return wants_reply_; }
  /// Whether nobody waits for the answer any more.
  [[nodiscard]] bool cancelled() const noexcept { return context_.cancelled(); }

  /// The answer of a call that was cancelled goes nowhere.
  void reply(Encoder& encoder);
  /// `began`: the function had begun to run, so that `error` is its own (wire::error_frame), unless
  /// it is a DidNotRun.
  void fail(const std::exception_ptr& error, bool began = false);

 private:
  void break_promise() noexcept;
  void note_begun();
  [[nodiscard]] CallRecording* recording() const noexcept;
  bool begin_late();
  void send_error(const std::exception_ptr& error, bool began);
  void count_error(const std::exception_ptr& error, bool began, std::uint64_t bytes) noexcept;
  void end();

  ReplySink* sink_;  // null when answered
  std::uint64_t id_;
  bool wants_reply_;
  bool waited_ = false;
  bool begun_ = false;
  CallContext context_;                   // with a CallState when it is kept
  CallArguments* arguments_;              // null while it is kept and has not begun
  FunctionCounters* counters_ = nullptr;  // live as long as the sink
  std::uint64_t arrived_ = 0;
  AsyncMutex::Guard lock_;
  std::unique_ptr<AdmissionPermit> place_;
};

/// An encoder of the calling thread's own, with the envelope reserved; may be used while another
/// is.
class BATCHRPC_EXPORT EncoderLease {
 public:
  EncoderLease();
  ~EncoderLease();
  EncoderLease(const EncoderLease&) = delete;
  EncoderLease& operator=(const EncoderLease&) = delete;
  Encoder& operator*() const noexcept { return *encoder_; }

 private:
  std::unique_ptr<Encoder> encoder_;
};

/// The node whose messages the calling thread is encoding or decoding; null outside of that. For
/// codecs of values that belong to a node, such as remote references.
class BATCHRPC_EXPORT CurrentNode {
 public:
  /// None, whatever it is outside of the scope.
  CurrentNode() noexcept;
  /// `node` stays where it is for as long as this lives.
  explicit CurrentNode(const std::shared_ptr<LocalNode>& node) noexcept;
  ~CurrentNode();
  CurrentNode(const CurrentNode&) = delete;
  CurrentNode& operator=(const CurrentNode&) = delete;

  [[nodiscard]] static std::shared_ptr<LocalNode> get();

 private:
  const std::shared_ptr<LocalNode>* outer_;
};

}  // namespace batchrpc::detail
