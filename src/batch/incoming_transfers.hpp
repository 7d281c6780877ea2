#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "batch/turns.hpp"
#include "batchrpc/call/receive_plan.hpp"

namespace batchrpc::detail {

/// A large call whose payloads are arriving, or wait at their sender.
struct IncomingTransfer {
  std::size_t bytes;
  std::shared_ptr<TransferGate> gate;
  bool held = false;  ///< it waits for its gate
  bool over = false;  ///< it no longer counts
};

/// Large calls wait at their senders until there is room. A queue full of announcements takes no
/// memory except what is sent unasked, at most 1 MiB each. This class decides which calls may come;
/// the callers take turns. Not thread-safe.
class IncomingTransfers {
 public:
  using Gates = std::vector<std::shared_ptr<TransferGate>>;

  /// The room for transfers.
  struct Room {
    bool one_by_one = false;        ///< for a reducer, which takes two at a time
    std::size_t to_accumulate = 0;  ///< for a reducer: calls that have arrived
    std::size_t waiting_bytes = 0;  ///< bytes of calls that have arrived
    std::size_t max_bytes = 0;      ///< limit for calls that have arrived or are arriving
  };

  /// Counts a new transfer until end(); it is held if there is no room.
  void begin(IncomingTransfer& transfer, const PeerIdentity* caller, const Room& room);
  /// Forgets a transfer that is not over: its call has arrived, or never will.
  void end(IncomingTransfer& transfer);
  /// Admits the transfers for which there is room. Adds their gates to `to`; open them without a
  /// lock.
  void let_come(const Room& room, Gates& to);
  /// Forgets all held transfers. The caller must open their gates.
  [[nodiscard]] Gates release_held();

  [[nodiscard]] bool any_held() const noexcept { return !held_.empty(); }
  [[nodiscard]] bool any_coming() const noexcept { return coming_ > 0; }
  /// The bytes of calls that are arriving.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  /// The gate may still be opened after the transfer is gone.
  struct Held {
    IncomingTransfer* transfer;
    std::shared_ptr<TransferGate> gate;
  };
  [[nodiscard]] bool may_come(const IncomingTransfer& transfer, const Room& room) const noexcept;
  void come(IncomingTransfer& transfer) noexcept;

  Turns<Held> held_;
  std::size_t coming_ = 0;
  std::size_t bytes_ = 0;  // of calls that are arriving
};

}  // namespace batchrpc::detail
