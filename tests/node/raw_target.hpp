#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "batchrpc/batchrpc.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"

namespace batchrpc::test {

inline int twice(int x) { return static_cast<int>(2 * std::int64_t{x}); }  // random ones too

/// A node joins, and the root answers its call of twice().
inline void another_peer_is_served(const VirtualWorld& world) {
  const Node other = world.join("other");
  CHECK(other.call<int(int)>("root", "twice", 4).get() == 8);
}

/// A node in virtual time for RawPeers to talk to.
struct RawTarget {
  explicit RawTarget(LogLevel log_level = LogLevel::debug) : node(make(log_level)) {}

  VirtualWorld world;
  Node node;

  Node make(LogLevel log_level) const {
    NodeOptions options = world.options("root");
    options.logging.level = log_level;
    options.limits.max_frame_bytes = 64 * 1024;
    options.limits.max_payload_bytes = 64 * 1024;
    Node made(options);
    made.expose("twice", twice);
    made.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    return made;
  }
  /// A correct node joins, and its call works.
  void next_call_works() const {
    const Node peer = world.join("peer");
    CHECK(peer.call<int(int)>("root", "twice", 4).get() == 8);
    CHECK(peer.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(30'000)).get() == 30'000);
  }
};

}  // namespace batchrpc::test
