#pragma once

#include <cstdint>
#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/remote_call.hpp"

/// How a function receives the large payloads of its calls: into which memory, and when.
namespace batchrpc::detail {

/// Lets the payloads of a held call come. It may be kept for any time.
class BATCHRPC_EXPORT TransferGate {
 public:
  virtual ~TransferGate();
  /// The bytes of all payloads that are to come.
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  /// How many of them have come. Thread-safe.
  [[nodiscard]] virtual std::uint64_t received() const noexcept = 0;
  /// Opens the gate. Thread-safe. It runs no user code, and does not wait for the loop or the peer:
  /// its message leaves soon, whatever the calling thread does next. A call that is not held yet
  /// will not be held. A second call does nothing, nor does one after the end of the call or of its
  /// connection.
  virtual void open() noexcept = 0;
};

/// How a function wants to receive a call whose payloads have yet to come.
///
/// A held call costs its sender the memory of its payloads. It costs this node little: the first
/// chunks, at most 1 MiB, are set aside, and copied when the gate opens. A call of up to 1 MiB may
/// come as a whole before its sender learns that it has to wait. It then runs, though the gate is
/// shut.
struct ReceivePlan {
  /// Comes back with the call (RunningCall::take_receive_plan). If the call never comes, because it
  /// was cancelled or its connection ended, the driving thread releases this and `target` without a
  /// lock.
  std::shared_ptr<void> kept{};
  /// Chooses the memory for the payloads. Null: the library does. Payloads in memory that it has
  /// chosen own the target, so it lives as long as they do. For a held call it is asked when the
  /// gate opens, or when the call has come although the gate is shut.
  std::shared_ptr<PayloadTarget> target{};
  /// The sender has to wait until the gate is opened.
  bool held = false;
};

}  // namespace batchrpc::detail
