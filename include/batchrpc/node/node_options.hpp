#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/log.hpp"

namespace asio {
class io_context;
}

namespace batchrpc {

class InprocNetwork;
class Loop;
class Transport;

/// Which sockets a node listens on and prefers.
enum class TransportChoice : unsigned char {
  automatic,    ///< a Unix socket to nodes of one host, else TCP
  tcp,          ///< TCP only
  unix_socket,  ///< Unix sockets only: all nodes on one host
};

/// How a node starts. A plain struct, so that a program names what it sets:
/// `Node node({.name = "worker0", .rank = 0, .world_size = 2, .join = "tcp://127.0.0.1:29500"});`
struct NodeOptions {
  /// Unique in the group; empty: "node<rank>", or one of its own where the root chooses the rank.
  /// At most 255 bytes.
  std::string name{};

  /// 0 is the root: it listens at `join`, and the others find each other through it. -1: the root
  /// numbers this node.
  int rank = 0;

  /// Nodes in the group: joining waits for all of them. 0: open, nodes come and go at any time.
  int world_size = 0;

  /// Where the root listens and others join: `tcp://host:port`, `unix:///path`,
  /// `unix-abstract:name`, `inproc://name`, `file:///path` (the root writes its address there) or
  /// `env://` (MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE as torchrun sets them; rank and
  /// world_size are then taken from there). Empty: a root that listens on a port of its own choice
  /// (see Node::address()).
  std::string join{};

  /// Where this node itself listens, a root too, instead of at `join`. Empty: chosen by
  /// `transport`, on loopback unless it joins through another address.
  std::string listen{};

  /// Nodes of different jobs do not talk to each other.
  std::string job{};

  /// Which sockets it listens on, and takes to others.
  TransportChoice transport = TransportChoice::automatic;

  /// How long joining takes at most, the wait for all ranks of a fixed world included; then it is a
  /// JoinFailed that names who is missing.
  Duration join_timeout = std::chrono::seconds(60);
  /// How long a call may take that does not say so itself; then it is TimedOut.
  Duration call_timeout = std::chrono::seconds(60);
  /// A peer that is silent or unreachable for this long is dead. At least `ping_after`.
  Duration dead_after = std::chrono::seconds(5);
  /// How often a peer is asked whether it lives.
  Duration ping_after = std::chrono::seconds(1);
  /// For this long after joining, a call of a function that this node has not exposed waits for it
  /// to be; later it fails with NotFound at once. So nodes that start together may call each other.
  Duration expose_within = std::chrono::seconds(5);
  /// What the destructor grants calls under way.
  Duration shutdown_timeout = std::chrono::seconds(1);

  /// Threads that run handlers: 1 to 1024. None are made for a loop of the embedder's.
  int num_worker_threads = 4;
  /// How long a thread that waits polls before it sleeps in the kernel, at most 1 s: shorter round
  /// trips where processors are free. It stops by itself where they are not. Zero: never. For nodes
  /// with threads of their own.
  Duration busy_poll{};

  /// Largest frame: the arguments, or the result, of one call without what travels beside them. In
  /// bytes; a larger one is refused before anything is allocated for it.
  std::uint64_t max_frame_bytes = std::uint64_t{64} << 20;
  /// Largest sum of what travels beside one call's arguments or result (tensors, Bytes), in bytes;
  /// refused as above.
  std::uint64_t max_payload_bytes = std::uint64_t{4} << 30;
  /// The credit of each peer: so many bytes of calls to it, arguments and what travels beside them,
  /// may be unfinished; so many may lie here until it has acknowledged them. A call beyond that is
  /// Overloaded, or waits by Node::wait_for_credit(); one that is larger by itself goes when at
  /// most half is used. And so many bytes of replies may lie here until the peer has acknowledged
  /// them: beyond that, its calls are refused with Overloaded. In bytes, at least 64 KiB.
  std::uint64_t max_outstanding_bytes = std::uint64_t{1} << 30;

  /// The least that is logged.
  LogLevel log_level = LogLevel::warning;
  LogSink log_sink{};  ///< null: standard error

  /// Where inproc:// addresses live; shared by the nodes that are to see each other.
  std::shared_ptr<InprocNetwork> network{};

  /// A program's own io_context, which it runs, handlers included, on as many threads as it likes;
  /// outlives the node, which then has none. Any thread may call and wait.
  asio::io_context* io_context = nullptr;

  /// A loop (a VirtualLoop, in tests) in which the node lives, with handlers and all.
  std::shared_ptr<Loop> loop{};

  /// Seed of what is random: incarnation, jitter. 0: from the system.
  std::uint64_t seed = 0;
};

/// How one call differs from the node's defaults. Trivial members only: safe in a co_await
/// expression (docs/getting-started.md).
struct CallOptions {
  /// Zero: the node's `call_timeout`. Duration::max(): none. One of a second or more may end up to
  /// 10 ms early.
  Duration timeout{};
};

/// What this node knows of a peer.
enum class PeerState : unsigned char {
  known,  ///< in the group; no connection, since nobody has called
  connecting,
  connected,
  lost,  ///< dead or gone; a call tries again
};

/// What a node knows of a peer at one moment.
struct PeerInfo {
  std::string name{};                    ///< unique in the group
  int rank = -1;                         ///< -1: not known
  std::uint64_t incarnation = 0;         ///< differs between two nodes that bore one name
  PeerState state = PeerState::known;    ///< of the connection to it
  std::vector<std::string> addresses{};  ///< where it is tried from here, in this order
  std::uint64_t reconnects = 0;          ///< how often a session with it has got a new connection
  std::string last_error{};              ///< why a connection ended, or was not made, the last time
};

}  // namespace batchrpc
