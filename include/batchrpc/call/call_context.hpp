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

/// Who a node is to others. Shared by all calls of a peer; never changes.
struct PeerIdentity {
  std::string name{};             ///< unique in the group
  int rank = -1;                  ///< -1: none
  std::uint64_t incarnation = 0;  ///< differs between two nodes that bore one name
};

/// What a handler may ask of the call that it answers. Copies stay valid after the handler has
/// returned.
///
/// Calls that are made in a handler (current() is set) take part in the call: they have no more
/// time than it has left, and are cancelled when it is, unless CallOptions::detached says otherwise
/// or it has been answered.
class BATCHRPC_EXPORT CallContext final : public detail::Ambient {
 public:
  /// Of no call: it has no caller.
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

  /// The call that the calling thread is answering; null outside of handlers, so also in a function
  /// that is exposed but called here, as an ordinary one. A coroutine's is the same after each
  /// co_await, and that of a callback of then() the one in which it was attached.
  /// (A handler that answers at once where its message is read, a short one, has a context for so
  /// long only; it is not told of a cancellation.)
  [[nodiscard]] static const CallContext* current() noexcept;

  /// Who calls. Not to be asked of a default-made context: it has none.
  [[nodiscard]] const PeerIdentity& caller() const noexcept { return *shared_caller(); }
  /// The same, to be kept; null in a default-made context.
  [[nodiscard]] const std::shared_ptr<const PeerIdentity>& shared_caller() const noexcept {
    return lender_ != nullptr ? *lender_ : owner_;
  }
  /// The trace that the call is part of; not valid where none came with it. Calls that are made in
  /// the handler go on with it.
  [[nodiscard]] TraceContext trace() const noexcept;
  /// What the caller has sent along (CallOptions::metadata), in its order.
  [[nodiscard]] std::span<const std::pair<std::string, std::string>> metadata() const noexcept;
  /// The first value of that key; nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> metadata(std::string_view key) const noexcept;

  /// When the caller stops waiting, on this node's clock; nothing if it waits for ever.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept {
    return deadline_ != kNoDeadline ? std::optional(deadline_) : std::nullopt;
  }
  /// How long is left, not less than zero; nothing if the caller waits for ever.
  [[nodiscard]] std::optional<Duration> time_left() const;

  /// Whether nobody waits for the answer any more: the caller has cancelled the call, has given it
  /// up at its deadline, or is gone.
  [[nodiscard]] bool cancelled() const noexcept;
  /// The same, to be waited for or to have a std::stop_callback run, on the thread that learns of
  /// it, which it must not block.
  [[nodiscard]] std::stop_token stop_token() const;
  /// Ready when the call is cancelled; fails with BrokenPromise when it is answered before. So a
  /// coroutine waits for it, or for the first of it and something else (when_any).
  [[nodiscard]] Future<void> when_cancelled() const;

  /// Makes `context` the calling thread's; returns the one before. For what runs handlers.
  static const CallContext* exchange_current(const CallContext* context) noexcept;

  /// For parts of the library: what can be cancelled; null of a call that is answered at once.
  /// @{
  void join(detail::Ref<detail::CallState> call) noexcept { call_ = std::move(call); }
  [[nodiscard]] const detail::Ref<detail::CallState>& call() const noexcept { return call_; }
  /// @}
  /// For parts of the library: what came with the call; null: nothing did. A context without a
  /// caller may have some, too, of a batch say: it is never current().
  /// @{
  void set_extras(detail::Ref<const detail::CallExtras> extras) noexcept {
    extras_ = std::move(extras);
    set_has_operators(static_cast<bool>(extras_));
  }
  [[nodiscard]] const detail::Ref<const detail::CallExtras>& extras() const noexcept {
    return extras_;
  }
  [[nodiscard]] static const detail::CallExtras* current_extras() noexcept;
  /// @}
  /// For parts of the library: why what belongs to the call is not to start any more, Cancelled or
  /// TimedOut; null: it may.
  [[nodiscard]] std::exception_ptr over() const;
  /// For parts of the library: whether it has not been answered, as far as this knows.
  [[nodiscard]] bool is_under_way() const noexcept;
  /// For parts of the library: a copy that lives by itself.
  [[nodiscard]] std::shared_ptr<const detail::Ambient> share() const override;
  /// For parts of the library: its recording, if that wants them.
  [[nodiscard]] detail::OperatorSink* operators() const noexcept override;

 private:
  // Calls that wait for their answers have one each: its size counts.
  static constexpr TimePoint kNoDeadline = TimePoint::max();

  const std::shared_ptr<const PeerIdentity>* lender_ = nullptr;
  std::shared_ptr<const PeerIdentity> owner_;
  TimePoint deadline_ = kNoDeadline;
  detail::Ref<detail::CallState> call_;
  detail::Ref<const detail::CallExtras> extras_;
};

}  // namespace batchrpc
