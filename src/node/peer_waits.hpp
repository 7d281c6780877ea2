#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/loop.hpp"
#include "peers/peer_table.hpp"

namespace batchrpc {

/// The futures of Node::wait_for_peer(): each is ready when its peer is there. Thread-safe.
class PeerWaits {
 public:
  /// `node` is the name of this node. `peers` must outlive this.
  PeerWaits(std::string node, std::shared_ptr<Loop> loop, PeerTable& peers)
      : node_(std::move(node)), loop_(std::move(loop)), peers_(peers) {}

  /// Waits for a peer of that name; has the peer table connect to it. Fails with TimedOut, or with
  /// ShutDown after close(). `owner` keeps this alive; the time-out does nothing without it.
  Future<PeerInfo> wait(std::string peer, Duration timeout, std::weak_ptr<const void> owner);
  /// Ends the waits for `peer`, if it is there.
  void end(const std::string& peer);
  /// Has the peer table connect to the peers, as those that nobody calls would not be tried.
  void seek() const;
  /// Fails all waits, and later ones, with ShutDown.
  void close();

 private:
  struct Wait {
    std::string peer;
    Promise<PeerInfo> promise;
    TimerId timer = 0;
  };

  [[nodiscard]] std::optional<Wait> take(std::uint64_t number);
  void time_out(std::uint64_t number, Duration timeout);

  const std::string node_;
  const std::shared_ptr<Loop> loop_;
  PeerTable& peers_;

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::uint64_t, Wait> waits_;
  std::uint64_t next_number_ = 1;
  bool closed_ = false;
};

}  // namespace batchrpc
