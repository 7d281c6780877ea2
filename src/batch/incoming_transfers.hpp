#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "batch/turns.hpp"
#include "batchrpc/call/receive_plan.hpp"

namespace batchrpc::detail {

/// A large call whose payloads are coming in, or wait at their sender.
struct IncomingTransfer {
  std::size_t bytes;
  std::shared_ptr<TransferGate> gate;
  bool held = false;  ///< it waits for its gate
  bool over = false;  ///< it is counted no more
};

/// Large calls wait at their senders until there is room for them: a queue that is full of
/// announcements takes no memory but for what comes unasked, at most 1 MiB of each. Says which may
/// come; the callers come in turn. Not thread-safe.
class IncomingTransfers {
 public:
  using Gates = std::vector<std::shared_ptr<TransferGate>>;

  /// How much may come.
  struct Room {
    bool one_by_one = false;        ///< of a reducer, which takes two at a time
    std::size_t to_accumulate = 0;  ///< of a reducer: calls that are here
    std::size_t waiting_bytes = 0;  ///< that those take which are here
    std::size_t max_bytes = 0;      ///< that those may take which are here or come
  };

  /// Counts a new one in, until end(); it is held when there is no room.
  void begin(IncomingTransfer& transfer, const PeerIdentity* caller, const Room& room);
  /// Forgets one that is not over: it is here now, or never will be.
  void end(IncomingTransfer& transfer);
  /// Lets those come for which there is room; their gates, to be opened without a lock, go to `to`.
  void let_come(const Room& room, Gates& to);
  /// Forgets all that are held. Their gates are to be opened.
  [[nodiscard]] Gates release_held();

  [[nodiscard]] bool any_held() const noexcept { return !held_.empty(); }
  [[nodiscard]] bool any_coming() const noexcept { return coming_ > 0; }
  /// Of those that come.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  /// The gate may be opened when the transfer is gone.
  struct Held {
    IncomingTransfer* transfer;
    std::shared_ptr<TransferGate> gate;
  };
  [[nodiscard]] bool may_come(const IncomingTransfer& transfer, const Room& room) const noexcept;
  void come(IncomingTransfer& transfer) noexcept;

  Turns<Held> held_;
  std::size_t coming_ = 0;
  std::size_t bytes_ = 0;  // of those that come
};

}  // namespace batchrpc::detail
