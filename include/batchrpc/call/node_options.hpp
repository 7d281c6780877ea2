#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/log.hpp"
#include "batchrpc/trace/trace_context.hpp"
#include "batchrpc/transport/transport_factory.hpp"

namespace asio {
class io_context;
}

namespace batchrpc {

class Loop;
class Transport;

namespace detail {
class OperatorSource;
class StatusPageFactory;
}  // namespace detail

/// Which of the calls that wait starts next.
enum class QueueOrder : unsigned char {
  fifo,               ///< the one that came first
  earliest_deadline,  ///< the one whose caller stops waiting first; those of one time as they came
};

/// How many calls of others a node takes on (docs/reliability.md, promise 7). Counted are the
/// functions that run on workers and the methods of objects: from when a call has arrived as a
/// whole until it is answered, so that a handler which returns a Future runs until that is ready.
/// Not counted are short handlers (ExposeOptions::short_handler), which run where they are read and
/// never wait, and calls of a Batcher, which has BatchOptions::max_queue. 0: no limit; a node with
/// none pays nothing.
///
/// A call beyond `accepted` is refused at once, with an Overloaded that estimates from the measured
/// run times when half of those before it are done. So is one that would wait for its start for
/// more than half of the time that its run leaves: what nobody waits for any more is not run. An
/// expired call never starts.
struct CallLimits {
  std::size_t accepted = 0;           ///< that wait and run, in all
  std::size_t accepted_per_peer = 0;  ///< that wait and run, of each peer
  /// That run at once. About `num_worker_threads` where handlers compute, more where they return
  /// futures. A handler that waits for a call which comes back to this node needs room for both.
  std::size_t running = 0;
  /// That run at once, of each peer. Those beyond wait, and calls of other peers pass them.
  std::size_t running_per_peer = 0;
  /// Of those that wait. By earliest_deadline, calls of one object with different time-outs may
  /// start in another order than they were made.
  QueueOrder order = QueueOrder::fifo;
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

  /// Where the root listens and others join: an address of one of its `transports`, such as
  /// `tcp://host:port` or `unix:///path`; `file:///path` (the root writes its address there) or
  /// `env://` (MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE as torchrun sets them; rank and
  /// world_size are then taken from there). Empty: a root that listens on a port of its own choice
  /// (see Node::address()).
  std::string join{};

  /// Where this node itself listens, a root too, instead of at `join`. Its transports listen beside
  /// that where they choose (Transport::own_address): TCP on loopback, unless the node joins
  /// through another address.
  std::string listen{};

  /// Nodes of different jobs do not talk to each other.
  std::string job{};

  /// How it listens and reaches others; to a peer with several ways it takes the one of the highest
  /// priority. Empty: built_in_transports(), a Unix socket to nodes of one host, else TCP; with a
  /// `loop` of its own, none. `{tcp_transport()}`: TCP alone. `{inproc_transport(network)}`: nodes
  /// of one process (`batchrpc/transport/inproc.hpp`). docs/transports.md shows how to add one.
  std::vector<TransportFactory> transports{};

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
  /// How long the RRefs of a node that cannot be reached, and may live, keep objects of this node
  /// alive (docs/rref.md); never for less than `dead_after`.
  Duration rref_lease = std::chrono::seconds(30);
  /// What the destructor grants calls under way.
  Duration shutdown_timeout = std::chrono::seconds(1);

  /// Threads that run handlers: 1 to 1024. None are made for a loop of the embedder's.
  int num_worker_threads = 4;
  /// How long a thread that waits for messages, the node's I/O thread or one in get(), polls before
  /// it sleeps in the kernel, at most 1 s: shorter round trips where processors are free. It stops
  /// by itself where they are not. Zero: never. For nodes with threads of their own.
  Duration busy_poll{};

  /// Whether calls that others profile are recorded here for them, with the operators and calls
  /// that they cause, and whether profilers of others may gather what this node's have recorded
  /// (docs/profiling.md).
  bool profiling = true;

  /// Has the operators of LibTorch that this node's calls run recorded for profilers, its own and
  /// those of others, and shows the calls that it makes to LibTorch's own profiler
  /// (docs/profiling.md): torch_operators() of <batchrpc/torch.hpp>. Null: calls alone.
  const detail::OperatorSource* operators = nullptr;

  /// Largest frame: the arguments, or the result, of one call without what travels beside them. In
  /// bytes; a larger one is refused before anything is allocated for it.
  std::uint64_t max_frame_bytes = std::uint64_t{64} << 20;
  /// Largest sum of what travels beside one call's arguments or result (tensors, Bytes), in bytes;
  /// refused as above.
  std::uint64_t max_payload_bytes = std::uint64_t{4} << 30;
  /// The credit of each peer: so many bytes of calls to it, arguments and what travels beside them,
  /// may be unfinished; so many may lie here until it has acknowledged them. A call beyond that is
  /// Overloaded, or waits by Peer::wait_for_credit(); one that is larger by itself goes when at
  /// most half is used. And so many bytes of replies may lie here until the peer has acknowledged
  /// them: beyond that, its calls are refused with Overloaded. In bytes, at least 64 KiB.
  std::uint64_t max_outstanding_bytes = std::uint64_t{1} << 30;

  /// What is refused, and what waits, when more calls come than this node can run.
  CallLimits call_limits{};

  /// Where this node shows itself by HTTP, to people and Prometheus (docs/status-page.md):
  /// status_page("127.0.0.1:8080") of <batchrpc/status.hpp>. Null: nowhere.
  std::shared_ptr<const detail::StatusPageFactory> status{};

  /// The least that is logged.
  LogLevel log_level = LogLevel::warning;
  LogSink log_sink{};  ///< null: standard error

  /// A program's own io_context, which it runs, handlers included, on as many threads as it likes;
  /// outlives the node, which then has none. Any thread may call and wait. A handler or callback
  /// there that waits does so by a future, and does not run the context itself.
  asio::io_context* io_context = nullptr;

  /// A loop (a VirtualLoop, in tests) in which the node lives, with handlers and all.
  std::shared_ptr<Loop> loop{};

  /// Seed of what is random: incarnation, jitter. 0: from the system.
  std::uint64_t seed = 0;
};

/// Whether, and how, the library makes a call again that has failed (docs/errors.md tells of each
/// error whether it is tried again). Trivial members only, as CallOptions.
///
/// NotSent, Overloaded, and the callee's ShutDown, of what surely never ran: that is always tried
/// again. PeerLost, Unknown, and an Overloaded of what has begun, when the function is idempotent.
/// All other errors go to the caller at once, TimedOut too: all attempts together have the call's
/// timeout. Retries are for short peaks: of a node at most a tenth of its calls that ask for them,
/// and ten that it has saved up; beyond, the error goes to the caller and says so: a peer that is
/// away is waited for with Node::wait_for_peer().
///
/// The arguments are encoded once and kept until the call has ended, payloads without a copy. Each
/// attempt goes to the peer by its name, which may have been restarted meanwhile. Calls that carry
/// an RRef, and call_into, are refused with InvalidArgument.
struct RetryOptions {
  /// All together, from 1 on; 1: it is not tried again.
  int attempts = 1;
  /// The pause before the second one; doubles for each further one, by up to a fifth more or less,
  /// and is not shorter than Overloaded::retry_after(). When that would be beyond the call's
  /// timeout, the error goes to the caller at once.
  Duration backoff = std::chrono::milliseconds(100);
  /// Running it twice does what running it once does: it is also tried again when it may have run.
  bool idempotent = false;
};

/// A small pair that travels with a call.
struct MetadataEntry {
  std::string_view key{};    ///< at least one byte
  std::string_view value{};  ///< any bytes
};

/// How one call differs from the node's defaults. Trivial members only: safe in a co_await
/// expression (docs/getting-started.md).
struct CallOptions {
  /// Zero: the node's `call_timeout`. Duration::max(): none. One of a second or more may end up to
  /// 10 ms early. A call that is made in a handler has at most the time that is left to the call
  /// which that answers.
  Duration timeout{};
  /// Made in a handler, it is none the less no part of the call which that answers: neither that
  /// one's deadline nor its cancellation applies.
  bool detached = false;
  /// Has dropping the call's future, unless somebody waits for it, cancel the call
  /// (Future::cancel). The future of `then()` is another one.
  bool cancel_when_dropped = false;
  /// Whether and how the library calls again after a failure; by default it does not.
  RetryOptions retry{};
  /// Small pairs that travel with the call (CallContext::metadata): at most 64, of 8 KiB together,
  /// keys not empty; beyond, the call fails with InvalidArgument. Looked at while it is made, only.
  std::span<const MetadataEntry> metadata{};
  /// Made in a handler, the call takes along the metadata of the call which that answers, behind
  /// its own, as far as there is room; a key that it has itself is not repeated.
  bool inherit_metadata = false;
  /// What the call is part of, of a trace that has begun elsewhere (a request by HTTP, say). Not
  /// valid, as by default: that of the call which a handler answers, if it has one.
  TraceContext trace{};
};

/// What this node knows of a peer.
enum class PeerState : unsigned char {
  known,  ///< in the group; no connection, since nobody has called
  connecting,
  connected,
  lost,  ///< dead or gone: a call tries its address, and it stays lost until it has answered
};

/// What a node knows of a peer at one moment.
struct PeerInfo {
  std::string name{};                    ///< unique in the group
  int rank = -1;                         ///< -1: not known
  std::uint64_t incarnation = 0;         ///< differs between two nodes that bore one name
  PeerState state = PeerState::known;    ///< of the connection to it
  std::vector<std::string> addresses{};  ///< where it is tried from here, in this order
  std::uint64_t reconnects = 0;          ///< how often a session with it has got a new connection
  std::string last_error{};  ///< why a connection ended, was not made, or the peer is lost, last
  /// How long a ping takes there and back, as last measured: smoothed as TCP does. Zero: not
  /// measured yet. Peers with much to send do not answer at once, and are then not measured.
  Duration round_trip{};
  /// What went over its connections since this node has known the name, in bytes: frames, payloads
  /// and handshakes.
  /// @{
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  /// @}
};

}  // namespace batchrpc
