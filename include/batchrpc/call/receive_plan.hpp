#pragma once

#include <cstdint>
#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/remote_call.hpp"

/// How a function takes calls whose large payloads have yet to come: into which memory, and when.
namespace batchrpc::detail {

/// Lets the payloads of a held call come. May be kept for as long as one likes.
class BATCHRPC_EXPORT TransferGate {
 public:
  virtual ~TransferGate();
  /// Of all payloads that are to come.
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  /// Thread-safe, runs no code of the user's, and does not wait for the loop or the peer: what it
  /// sends leaves soon, whatever the calling thread does next. Again, before the call was held (it
  /// is then not), and after the end of the call or of its connection it does nothing.
  virtual void open() noexcept = 0;
};

/// What a function says of a call whose payloads have yet to come.
///
/// A call that is held costs its sender the memory of its payloads, and this node next to none: the
/// first chunks, at most 1 MiB, are set aside, and copied when the gate is open. A call of no more
/// than that may come as a whole before its sender hears that it is to wait: it runs, though the
/// gate is shut.
struct ReceivePlan {
  /// Comes back with the call (RunningCall::take_receive_plan). Let go of when that will never be:
  /// it was cancelled, or its connection ended; on the driving thread, without a lock, as `target`
  /// is.
  std::shared_ptr<void> kept{};
  /// Where the payloads go; null: to memory of the library's. Those that it has chosen memory for
  /// own it, so that it lives as long as they do. Of a held call it is asked when the gate is open,
  /// or when the call has come all the same.
  std::shared_ptr<PayloadTarget> target{};
  /// The sender is to wait until the gate is opened.
  bool held = false;
};

}  // namespace batchrpc::detail
