#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "batch/turns.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/call/receive_plan.hpp"

namespace batchrpc::detail {

/// A large call whose payloads are arriving, or wait at their sender.
struct IncomingTransfer {
  std::size_t bytes;
  std::shared_ptr<TransferGate> gate;
  std::shared_ptr<const PeerIdentity> caller{};
  bool held = false;     ///< it waits for its gate
  bool over = true;      ///< it does not count yet, or no longer
  bool stalled = false;  ///< it came too slowly, and counts only for its own caller
  std::size_t seen = 0;  ///< the bytes that had come at `seen_at`
  TimePoint seen_at{};   ///< when it was last looked at
  std::list<IncomingTransfer*>::iterator place{};  ///< in the order of `seen_at`, while it moves
};

/// Large calls wait at their senders until there is room. A queue full of announcements takes no
/// memory except what is sent unasked, at most 1 MiB each. This class decides which calls may come;
/// the callers take turns. Not thread-safe.
///
/// A call that is arriving takes all its room from its own caller. From others it takes at most its
/// caller's fair share, and nothing once it has stalled. So nobody waits long for what never comes.
class IncomingTransfers {
 public:
  using Gates = std::vector<std::shared_ptr<TransferGate>>;

  /// The room for transfers.
  struct Room {
    bool one_by_one = false;        ///< for a reducer, which takes two at a time
    std::size_t to_accumulate = 0;  ///< for a reducer: calls that have arrived
    std::size_t waiting_bytes = 0;  ///< bytes of calls that have arrived
    std::size_t max_bytes = 0;      ///< limit for calls that have arrived or are arriving
    TimePoint now{};
    Duration stalls_after =
        Duration::max();  ///< a transfer stalls after this time without progress
  };

  /// Counts a new transfer until end(); it is held if there is no room.
  void begin(IncomingTransfer& transfer, const Room& room);
  /// Forgets a transfer that is not over: its call has arrived, or never will.
  void end(IncomingTransfer& transfer);
  /// Admits the transfers for which there is room. Adds their gates to `to`; open them without a
  /// lock.
  void let_come(const Room& room, Gates& to);
  /// Forgets all held transfers. The caller must open their gates.
  [[nodiscard]] Gates release_held();

  [[nodiscard]] bool any_held() const noexcept { return !held_.empty(); }
  /// Whether no call waits, and none is arriving except those that have stalled.
  [[nodiscard]] bool is_idle() const noexcept { return held_.empty() && moving_.empty(); }
  /// Whether calls are arriving that have not stalled.
  [[nodiscard]] bool any_moving(const Room& room);
  /// When the next of those may stall; TimePoint::max(): none is arriving.
  [[nodiscard]] TimePoint next_stall(const Room& room) const noexcept;

 private:
  /// The gate may still be opened after the transfer is gone.
  struct Held {
    IncomingTransfer* transfer;
    std::shared_ptr<TransferGate> gate;
  };
  /// What arrives of one caller.
  struct Share {
    std::size_t calls = 0;
    std::size_t bytes = 0;
    std::size_t moving_calls = 0;  // those that have not stalled
    std::size_t moving_bytes = 0;
  };
  /// What the calls that are moving take from a caller: from one that has some, and from others.
  struct Load {
    struct Taken {
      std::size_t fair = 0;   // the most that one caller takes
      std::size_t bytes = 0;  // that all take
    };
    std::size_t callers = 0;  // that have some
    std::array<Taken, 2> taken{};
  };
  [[nodiscard]] Load load(const Room& room) const;
  [[nodiscard]] bool may_come(const IncomingTransfer& transfer, const Room& room,
                              const Load& load) const;
  void come(IncomingTransfer& transfer, const Room& room);
  void stop_moving(IncomingTransfer& transfer);
  void look_for_stalled(const Room& room);

  Turns<Held> held_;
  std::list<IncomingTransfer*> moving_;
  std::unordered_map<const PeerIdentity*, Share> shares_;  // of callers whose calls are arriving
};

}  // namespace batchrpc::detail
