#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "batchrpc/call/running_call.hpp"

/// A peer's call before it begins to run. Each type here hides a RunningCall, and gives it out when
/// the call begins.
namespace batchrpc::detail {

/// A call that has come and has not begun: it may be counted, admitted or refused.
class IncomingCall : protected RunningCall {
 public:
  using RunningCall::cancelled;
  using RunningCall::context;
  using RunningCall::count_by;
  using RunningCall::hold;
  using RunningCall::is_late;
  using RunningCall::permit;
  using RunningCall::wants_reply;

  /// Answers the call with `error`, unless it was cancelled. It never runs.
  void refuse(const std::exception_ptr& error);
  /// Answers a call that is_late().
  void refuse_late();

 protected:
  using RunningCall::RunningCall;
  IncomingCall(IncomingCall&&) noexcept = default;
  ~IncomingCall() = default;
};

/// A call that waits for its turn. It is independent of its message, and may be cancelled.
class WaitingCall final : public IncomingCall {
 public:
  WaitingCall(WaitingCall&&) noexcept = default;

  /// Sets the function that will run, if that is known now.
  [[nodiscard]] WaitingCall keep(std::shared_ptr<ExposedFunction> function = nullptr) && {
    RunningCall::keep(std::move(function));
    return std::move(*this);
  }
  /// Begins, and returns the call that runs, which lies in this one. Null: the call must not run.
  /// It was cancelled, or its time is over and it is answered.
  [[nodiscard]] RunningCall* begin() &&;

 private:
  friend class ArrivedCall;
  explicit WaitingCall(IncomingCall&& call) noexcept : IncomingCall(std::move(call)) {}
};

/// A call whose message was just read. Its arguments are views of the message, so it stays where it
/// is.
class ArrivedCall final : public IncomingCall {
 public:
  /// `arguments` must outlive this.
  ArrivedCall(ReplySink& sink, std::uint64_t id, bool wants_reply, CallContext context,
              CallArguments& arguments) noexcept
      : IncomingCall(sink, id, wants_reply, std::move(context), arguments) {}
  ArrivedCall(ArrivedCall&&) = delete;

  using RunningCall::bytes;

  /// Makes the call independent of its message. `function` will run; null: it is not known yet.
  [[nodiscard]] WaitingCall keep(std::shared_ptr<ExposedFunction> function = nullptr) && {
    make_state(false, std::move(function));
    return WaitingCall(std::move(*this));
  }
  /// Begins, and returns the call that runs, which lies in this one; never null.
  [[nodiscard]] RunningCall* begin() && {
    note_begun();
    return this;
  }
};

}  // namespace batchrpc::detail
