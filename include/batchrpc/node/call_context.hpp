#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Who a node is to others. Shared by all calls of a peer; never changes.
struct PeerIdentity {
  std::string name{};             ///< unique in the group
  int rank = -1;                  ///< -1: none
  std::uint64_t incarnation = 0;  ///< differs between two nodes that bore one name
};

/// What a handler may ask of the call that it answers. Copies stay valid after the handler has
/// returned.
class BATCHRPC_EXPORT CallContext {
 public:
  /// Of no call: it has no caller.
  CallContext() = default;
  /// Borrows `caller`; a copy of the context shares it.
  CallContext(const std::shared_ptr<const PeerIdentity>& caller, std::optional<TimePoint> deadline)
      : lender_(&caller), deadline_(deadline) {}
  /// Shares the caller, also of a context that borrows it.
  CallContext(const CallContext& other)
      : owner_(other.shared_caller()), deadline_(other.deadline_) {}
  CallContext(CallContext&&) noexcept = default;
  CallContext& operator=(CallContext other) noexcept {
    lender_ = other.lender_;
    owner_ = std::move(other.owner_);
    deadline_ = other.deadline_;
    return *this;
  }

  /// The call that the calling thread is answering; null outside of handlers. A coroutine takes
  /// what it needs before it first suspends: afterwards it may run on another thread.
  [[nodiscard]] static const CallContext* current() noexcept;

  /// Who calls. Not to be asked of a default-made context: it has none.
  [[nodiscard]] const PeerIdentity& caller() const noexcept { return *shared_caller(); }
  /// The same, to be kept; null in a default-made context.
  [[nodiscard]] const std::shared_ptr<const PeerIdentity>& shared_caller() const noexcept {
    return lender_ != nullptr ? *lender_ : owner_;
  }
  /// When the caller stops waiting, on this node's clock; nothing if it waits for ever.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept { return deadline_; }
  /// How long is left, not less than zero; nothing if the caller waits for ever.
  [[nodiscard]] std::optional<Duration> time_left() const;

  /// Makes `context` the calling thread's; returns the one before. For what runs handlers.
  static const CallContext* exchange_current(const CallContext* context) noexcept;

 private:
  const std::shared_ptr<const PeerIdentity>* lender_ = nullptr;
  std::shared_ptr<const PeerIdentity> owner_;
  std::optional<TimePoint> deadline_;
};

}  // namespace batchrpc
