#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_state.hpp"
#include "batchrpc/future/ambient.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/trace/trace_context.hpp"

namespace batchrpc {

class Node;

/// Who a node is to others. Shared by all calls of a peer; never changes.
struct PeerIdentity {
  std::string name{};             ///< unique in the group
  int rank = -1;                  ///< -1: none
  std::uint64_t incarnation = 0;  ///< differs between two nodes that bore one name
  /// What its connection has proved: the name in its certificate, "token", "user UID" for a Unix
  /// socket, or empty.
  std::string identity{};
};

namespace detail {
struct ContextAccess;
}  // namespace detail

/// The call that a handler answers. Copies stay valid after the handler has returned.
///
/// Calls that are made in a handler (current() is not null) are part of the call: they have no more
/// time than it has left, and are cancelled when it is. This ends when it has been answered, and
/// does not apply to calls with CallOptions::detached.
class BATCHRPC_EXPORT CallContext final : public detail::Ambient {
 public:
  /// Belongs to no call: it has no caller.
  CallContext() = default;
  /// Borrows `caller`; a copy of the context shares it.
  CallContext(const std::shared_ptr<const PeerIdentity>& caller, std::optional<TimePoint> deadline)
      : lender_(&caller), deadline_(deadline.value_or(kNoDeadline)) {}
  /// Shares the caller, also of a context that borrows it.
  CallContext(const CallContext& other)
      : detail::Ambient(other),
        owner_(other.shared_caller()),
        deadline_(other.deadline_),
        call_(other.call_),
        extras_(other.extras_) {}
  CallContext(CallContext&&) noexcept = default;
  CallContext& operator=(CallContext other) noexcept {
    detail::Ambient::operator=(other);
    lender_ = other.lender_;
    owner_ = std::move(other.owner_);
    deadline_ = other.deadline_;
    call_ = std::move(other.call_);
    extras_ = std::move(other.extras_);
    return *this;
  }

  /// Returns the call that the calling thread is answering; null outside of handlers, also in an
  /// exposed function that this process calls directly. A coroutine has the same one after each
  /// co_await. A callback of then() has the one that was current when it was attached. A handler
  /// that answers at once where its message is read (a short one) has its context only until then,
  /// and is not told of a cancellation.
  [[nodiscard]] static const CallContext* current() noexcept;

  /// Returns the caller. Do not call it for a default-made context, which has none.
  [[nodiscard]] const PeerIdentity& caller() const noexcept { return *shared_caller(); }
  /// Returns the caller, to be kept; null in a default-made context.
  [[nodiscard]] const std::shared_ptr<const PeerIdentity>& shared_caller() const noexcept {
    return lender_ != nullptr ? *lender_ : owner_;
  }
  /// Returns the node that is called, for calls that the handler makes:
  /// `CallContext::current()->node()->call<&f>("worker1")`. Its calls fail with ShutDown once the
  /// node has ended. Null once the call has been answered.
  [[nodiscard]] std::shared_ptr<const Node> node() const;
  /// Returns the trace that the call is part of; not valid if none came with it. Calls that the
  /// handler makes continue it.
  [[nodiscard]] TraceContext trace() const noexcept;
  /// Returns the caller's metadata (CallOptions::metadata), in its order.
  [[nodiscard]] std::span<const std::pair<std::string, std::string>> metadata() const noexcept;
  /// Returns the first value of that key, if there is one.
  [[nodiscard]] std::optional<std::string_view> metadata(std::string_view key) const noexcept;

  /// Returns the time at which the caller stops waiting, on this node's clock; nothing if it waits
  /// for ever.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept {
    return deadline_ != kNoDeadline ? std::optional(deadline_) : std::nullopt;
  }
  /// Returns the time that is left, at least zero; nothing if the caller waits for ever.
  [[nodiscard]] std::optional<Duration> time_left() const;

  /// Returns whether nobody waits for the answer any more: the caller has cancelled the call, has
  /// given it up at its deadline, or is gone.
  [[nodiscard]] bool cancelled() const noexcept;
  /// Returns a token for the same. The thread that learns of the cancellation runs a
  /// std::stop_callback of it, which must not block.
  [[nodiscard]] std::stop_token stop_token() const;
  /// Returns a future that is ready when the call is cancelled. It fails with BrokenPromise when
  /// the call is answered before. So a coroutine can wait for the cancellation, or for the first of
  /// it and something else (when_any).
  [[nodiscard]] Future<void> when_cancelled() const;

 private:
  friend struct detail::ContextAccess;

  [[nodiscard]] std::shared_ptr<const detail::Ambient> share() const override;
  [[nodiscard]] detail::OperatorSink* operators() const noexcept override;

  // Calls that wait for their answers have one each: its size counts.
  static constexpr TimePoint kNoDeadline = TimePoint::max();

  const std::shared_ptr<const PeerIdentity>* lender_ = nullptr;
  std::shared_ptr<const PeerIdentity> owner_;
  TimePoint deadline_ = kNoDeadline;
  detail::Ref<detail::CallState> call_;
  detail::Ref<const detail::CallExtras> extras_;
};

namespace detail {

/// What the library's own parts use of a context, and programs do not.
struct BATCHRPC_EXPORT ContextAccess {
  /// Makes `context` the calling thread's, and returns the previous one; for what runs handlers.
  static const CallContext* exchange_current(const CallContext* context) noexcept;

  /// The state by which the call can be cancelled; null if the call is answered at once.
  /// @{
  static void join(CallContext& context, Ref<CallState> call) noexcept {
    context.call_ = std::move(call);
  }
  [[nodiscard]] static const Ref<CallState>& call(const CallContext& context) noexcept {
    return context.call_;
  }
  /// @}

  /// What came with the call, or null. A context without a caller may have some, such as that of a
  /// batch: it is never current().
  /// @{
  static void set_extras(CallContext& context, Ref<const CallExtras> extras) noexcept {
    context.extras_ = std::move(extras);
    context.set_has_operators(static_cast<bool>(context.extras_));
  }
  [[nodiscard]] static const Ref<const CallExtras>& extras(const CallContext& context) noexcept {
    return context.extras_;
  }
  [[nodiscard]] static const CallExtras* current_extras() noexcept;
  /// @}

  /// Returns the error because of which nothing of the call is to start any more, Cancelled or
  /// TimedOut; null: it may start.
  [[nodiscard]] static std::exception_ptr over(const CallContext& context);
  /// Returns whether the call has not been answered, as far as this is known.
  [[nodiscard]] static bool is_under_way(const CallContext& context) noexcept;
};

}  // namespace detail

}  // namespace batchrpc
