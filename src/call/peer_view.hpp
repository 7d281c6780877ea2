#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// A change in what a node knows of the others.
struct PeerChange {
  enum class Kind : unsigned char {
    joined,
    lost,
    // Changes of this node itself, with an empty `peer`:
    ticked,   ///< a ping interval has passed
    ended,    ///< it ends, and still has connections
    leaving,  ///< it is about to close them
  };
  Kind kind = Kind::joined;
  PeerInfo peer{};
  std::string reason{};  ///< why the peer was lost
};

/// The state of a peer as a node knows it, for layers that have data at that peer.
struct PeerStanding {
  std::uint64_t incarnation = 0;     ///< 0: there is no such peer
  bool live = false;                 ///< as far as this node knows
  bool dead = false;                 ///< it has said goodbye, or its address refuses connections
  bool left = false;                 ///< it has said goodbye
  std::uint64_t sessions_ended = 0;  ///< their messages in flight were lost
};

/// The peers of a node as other layers see them. Thread-safe; takes the node's own locks.
class PeerView {
 public:
  [[nodiscard]] virtual PeerStanding standing(std::string_view name) const = 0;
  /// Whether that incarnation is live, as far as this node knows. It knows nothing of nodes in
  /// other groups.
  [[nodiscard]] virtual bool is_current(const PeerIdentity& peer) const = 0;
  /// Whether `peer` is a member of this node's group, also if it is lost at present.
  [[nodiscard]] virtual bool is_member(const PeerIdentity& peer) const = 0;
  /// Whether the peer does not take the messages that are sent to it.
  [[nodiscard]] virtual bool is_behind(std::string_view name) const = 0;
  /// Tries to reach a peer that only this node has lost, as a call would.
  virtual void seek(std::string_view name) = 0;

 protected:
  ~PeerView() = default;
};

}  // namespace batchrpc
