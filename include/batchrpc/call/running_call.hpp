#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/call_state.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/wire/decoder.hpp"
#include "batchrpc/wire/encoder.hpp"

/// The callee's end of a call, below the typed functions: what a function that runs is given.
namespace batchrpc {
class FunctionCounters;
class LocalNode;
}  // namespace batchrpc

namespace batchrpc::detail {

class CallRecording;

/// Takes the replies of calls back to the peer. Thread-safe.
class BATCHRPC_EXPORT ReplySink {
 public:
  virtual ~ReplySink();
  /// Sends a result. `encoder` holds kEnvelopeWords and a body; its payloads are moved away. Throws
  /// InvalidArgument, with nothing sent, if the result is beyond a limit. What was recorded of the
  /// call goes along, unless `recording` is null.
  virtual void send_result(std::uint64_t call, Encoder& encoder, CallRecording* recording) = 0;
  /// Sends an error in the same way, and returns its bytes. `began`: the function had begun to run.
  virtual std::uint64_t send_error(std::uint64_t call, const std::exception_ptr& error, bool began,
                                   CallRecording* recording) = 0;
  /// Notes a call that outlives its message, and returns this sink, shared. The call counts as
  /// being answered until answered(). So long it may be cancelled, if it wants a reply.
  virtual std::shared_ptr<ReplySink> keep(const Ref<CallState>& call, bool wants_reply) = 0;
  /// Follows the reply of such a call, if it wanted one.
  virtual void answered(const CallState& call) = 0;
  /// Whether this is a copy in a child of a fork(), where threads of the parent may have its locks.
  [[nodiscard]] virtual bool is_forked_copy() const noexcept = 0;
  [[nodiscard]] virtual bool is_over(TimePoint deadline) const noexcept = 0;
  /// Reports an exception that has left a handler. The caller wanted no reply if
  /// `of_notification`.
  virtual void handler_threw(std::string_view function, const std::exception_ptr& error,
                             bool of_notification);
  /// The node that is called; null if there is none.
  [[nodiscard]] virtual std::shared_ptr<LocalNode> node() const;
  /// The time for what is remembered of calls.
  [[nodiscard]] virtual TimePoint now() const noexcept;
};

/// Copies those payloads into memory of their own that are views of a buffer without an owner.
BATCHRPC_EXPORT void own_payloads(std::vector<Bytes>& payloads);

/// Thrown by the library's own functions in place of `error`: what was to be called did not begin.
struct DidNotRun {
  std::exception_ptr error;
};
/// Returns the error in a DidNotRun; null for any other exception.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr why_not_run(const std::exception_ptr& error);

/// What a call takes up at its node (NodeOptions::limits.calls). It is destroyed when the call is
/// answered.
class BATCHRPC_EXPORT AdmissionPermit {
 public:
  AdmissionPermit() = default;
  virtual ~AdmissionPermit();
  AdmissionPermit(const AdmissionPermit&) = delete;
  AdmissionPermit& operator=(const AdmissionPermit&) = delete;

  bool ran = false;  ///< the call has begun to run
};

/// A peer's call that runs: its arguments, and the duty to answer it exactly once. A call that is
/// destroyed unanswered is answered with BrokenPromise. One thread uses it at a time.
///
/// It lies where it was before it began (call/incoming_call.hpp), so beginning moves nothing. Its
/// function may answer it in place, or move it into a DeferredCall.
class BATCHRPC_EXPORT RunningCall {
 public:
  RunningCall& operator=(RunningCall&&) = delete;

  /// Reads the arguments. Until own_payloads() or keep(), small payloads are views of the buffer
  /// that they were read into, without an owner. Until keep(), the rest is a view of the message.
  [[nodiscard]] Decoder arguments() const {
    return Decoder(arguments_->segment, arguments_->payloads);
  }
  /// The same for a function of the library, which runs on the driving thread: its arguments may
  /// take eight times the memory that they take in the message, or 64 KiB.
  [[nodiscard]] Decoder library_arguments() const {
    constexpr std::size_t kLeast = 8192;
    return Decoder(arguments_->segment, arguments_->payloads,
                   {.traversal_words = std::max(kLeast, 8 * arguments_->segment.size())});
  }
  /// What came beside the message. A function may put such views elsewhere.
  [[nodiscard]] std::vector<Bytes>& payloads() noexcept { return arguments_->payloads; }
  void own_payloads() { detail::own_payloads(arguments_->payloads); }
  /// Makes the call independent of its message. It keeps `function` alive, which runs, if that is
  /// not null.
  void keep(std::shared_ptr<ExposedFunction> function = nullptr);
  /// Takes what the function kept when the call was announced (ReceivePlan::kept). Null: it was not
  /// announced.
  [[nodiscard]] std::shared_ptr<void> take_receive_plan() noexcept {
    return std::move(arguments_->receive_plan);
  }
  /// The bytes of memory that the arguments take.
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Frees the arguments. Nothing that was decoded as a view may be used any more.
  void drop_arguments() noexcept { *arguments_ = {}; }

  [[nodiscard]] const CallContext& context() const noexcept { return context_; }
  /// Whether nobody waits for the answer any more.
  [[nodiscard]] bool cancelled() const noexcept { return context_.cancelled(); }

  /// Answers with a result, unless the call was cancelled. A second answer is dropped.
  void reply(Encoder& encoder);
  /// Answers with an error. `began`: the function had begun to run, so the error is its own
  /// (wire::error_frame), unless it is a DidNotRun.
  void fail(const std::exception_ptr& error, bool began = false);

 protected:
  /// Borrows `arguments` until the call is kept.
  RunningCall(ReplySink& sink, std::uint64_t id, bool wants_reply, CallContext context,
              CallArguments& arguments) noexcept
      : sink_(&sink),
        id_(id),
        wants_reply_(wants_reply),
        context_(std::move(context)),
        arguments_(&arguments) {}
  RunningCall(RunningCall&& other) noexcept
      : sink_(std::exchange(other.sink_, nullptr)),
        id_(other.id_),
        wants_reply_(other.wants_reply_),
        context_(std::move(other.context_)),
        arguments_(other.arguments_),
        counters_(other.counters_),
        arrived_(other.arrived_),
        lock_(std::move(other.lock_)),
        permit_(std::move(other.permit_)) {}
  ~RunningCall() {
    if (sink_ != nullptr) break_promise();
    if (ContextAccess::call(context_)) ContextAccess::call(context_)->let_go();
  }

  // For those who have the call before it begins:

  [[nodiscard]] bool wants_reply() const noexcept { return wants_reply_; }
  /// Counts the call there, and later its end. `arrived`: when it came, by Loop::ticks(). `bytes`:
  /// those of its arguments.
  void count_by(FunctionCounters& counters, std::uint64_t arrived, std::size_t bytes) noexcept;
  /// Holds a lock until the call is answered (ExposeOptions::exclusive).
  void hold(AsyncMutex::Guard lock) noexcept { lock_ = std::move(lock); }
  /// Holds a permit until the call is answered.
  void hold(std::unique_ptr<AdmissionPermit> permit) noexcept { permit_ = std::move(permit); }
  /// Null: the call needs none.
  [[nodiscard]] AdmissionPermit* permit() const noexcept { return permit_.get(); }

  /// Moves the arguments into a CallState, from which the call may be cancelled.
  void make_state(bool started, std::shared_ptr<ExposedFunction> function);
  void note_begun() {
    if (ContextAccess::extras(context_)) record_begun();
  }
  /// Whether a reply would come after the deadline.
  [[nodiscard]] bool is_late() const noexcept;

 private:
  void break_promise() noexcept;
  void record_begun();
  [[nodiscard]] CallRecording* recording() const noexcept;
  void send_error(const std::exception_ptr& error, bool began);
  void count_error(const std::exception_ptr& error, bool began, std::uint64_t bytes) noexcept;
  void report_thrown(const std::exception_ptr& error) noexcept;
  void end();

  ReplySink* sink_;  // null when answered
  std::uint64_t id_;
  bool wants_reply_;
  CallContext context_;                   // with a CallState when the call is kept
  CallArguments* arguments_;              // the message's, or those of the CallState
  FunctionCounters* counters_ = nullptr;  // live as long as the sink
  std::uint64_t arrived_ = 0;
  AsyncMutex::Guard lock_;
  std::unique_ptr<AdmissionPermit> permit_;
};

/// A running call that is answered later, perhaps after ExposedFunction::run() has returned.
class DeferredCall final : public RunningCall {
 public:
  /// Keeps the call (RunningCall::keep). If that throws, `call` has still to be answered.
  explicit DeferredCall(RunningCall&& call, std::shared_ptr<ExposedFunction> function = nullptr)
      : RunningCall((call.keep(std::move(function)), std::move(call))) {}
  DeferredCall(DeferredCall&&) noexcept = default;
};

}  // namespace batchrpc::detail
