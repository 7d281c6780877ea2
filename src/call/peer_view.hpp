#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// A change of what a node knows of the others.
struct PeerChange {
  enum class Kind : unsigned char {
    joined,
    lost,
    // Of this node itself, where `peer` is empty:
    ticked,   ///< a ping interval has passed
    ended,    ///< it ends, and has connections yet
    leaving,  ///< it is about to close them
  };
  Kind kind = Kind::joined;
  PeerInfo peer{};
  std::string reason{};  ///< of a loss
};

/// What a node knows of a peer's life, for who has left something with it.
struct PeerStanding {
  std::uint64_t incarnation = 0;     ///< 0: there is no such peer
  bool live = false;                 ///< as far as this node can tell
  bool dead = false;                 ///< it has said goodbye, or its address refuses
  bool left = false;                 ///< it has said goodbye
  std::uint64_t sessions_ended = 0;  ///< with what was on its way in them
};

/// The peers of a node as other layers see them. Thread-safe; takes locks of the node's own.
class PeerView {
 public:
  [[nodiscard]] virtual PeerStanding standing(std::string_view name) const = 0;
  /// Whether that incarnation is live, as far as this node can tell: it cannot of nodes of another
  /// group.
  [[nodiscard]] virtual bool is_current(const PeerIdentity& peer) const = 0;
  /// Whether the peer does not take what is sent to it.
  [[nodiscard]] virtual bool is_behind(std::string_view name) const = 0;
  /// Tries to reach a peer that this node alone has lost, as a call would.
  virtual void seek(std::string_view name) = 0;

 protected:
  ~PeerView() = default;
};

}  // namespace batchrpc
