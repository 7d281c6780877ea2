#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/log.hpp"
#include "batchrpc/trace/trace_context.hpp"
#include "batchrpc/transport/security.hpp"
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

/// Which of the queued calls starts next.
enum class QueueOrder : unsigned char {
  fifo,               ///< the call that arrived first
  earliest_deadline,  ///< the call with the earliest deadline; equal ones in order of arrival
};

/// The number of peers' calls that a node accepts (docs/reliability.md, promise 7). Calls of
/// functions that run on workers count, from the arrival of the whole call until it is answered: a
/// handler that returns a Future runs until that is ready. Short handlers
/// (ExposeOptions::short_handler) run where they are read, never wait, and do not count. Calls of
/// objects' methods wait in the queues of their objects, and do not count. Calls of a Batcher have
/// BatchOptions::max_queue instead. 0: no limit; a node without limits pays nothing.
///
/// A call beyond `accepted` is refused at once with Overloaded, which estimates from measured run
/// times when half of the calls before it will be done. A call is also refused if its wait would
/// take more than half of the time that its run leaves: this avoids running calls whose callers
/// have given up. An expired call never starts.
struct CallLimits {
  std::size_t accepted = 0;           ///< calls that wait or run, in all
  std::size_t accepted_per_peer = 0;  ///< calls that wait or run, of each peer
  /// Calls that run at once. Choose about `num_worker_threads` if handlers compute, more if they
  /// return futures. A handler that waits for a call which comes back to this node needs room for
  /// both.
  std::size_t running = 0;
  /// Calls that run at once, of each peer. Calls beyond that wait, and calls of other peers pass
  /// them.
  std::size_t running_per_peer = 0;
  /// The order of the queue. With earliest_deadline, calls of one object with different timeouts
  /// may start in another order than they were made.
  QueueOrder order = QueueOrder::fifo;
};

/// The limits of memory and work.
struct NodeLimits {
  /// The largest frame: the arguments, or the result, of one call, without payloads. In bytes. A
  /// call that this node cannot send, or that its peer cannot take, fails with InvalidArgument.
  /// Other calls go on. Strings, vectors and numbers count here; Bytes and tensors below.
  std::uint64_t max_frame_bytes = std::uint64_t{64} << 20;
  /// The most bytes of payloads (tensors, Bytes) of one call's arguments or result. More are
  /// refused in the same way.
  std::uint64_t max_payload_bytes = std::uint64_t{4} << 30;
  /// The credit of each peer, in bytes, at least 64 KiB. Calls with so many bytes, payloads
  /// included, may be unfinished, and may be kept here until the peer has acknowledged them. A call
  /// beyond that fails with Overloaded, or waits by Peer::wait_for_credit(). A call that is larger
  /// by itself is sent when at most half of the credit is used. As many bytes of replies may be
  /// kept here until the peer has acknowledged them. Beyond that, the peer's calls are refused with
  /// Overloaded. So are its calls when those that are unfinished here take 256 MiB more than this,
  /// over all its connections and whatever credit the peer gives itself.
  std::uint64_t max_outstanding_bytes = std::uint64_t{1} << 30;
  /// What is refused, and what waits, when more calls arrive than this node can run.
  CallLimits calls{};
};

/// How a node notices that peers are dead, and what becomes of their RRefs.
struct LivenessOptions {
  /// The interval at which a peer is asked whether it lives.
  Duration ping_after = std::chrono::seconds(1);
  /// A peer that is silent or unreachable for this long is dead. At least `ping_after`.
  Duration dead_after = std::chrono::seconds(5);
  /// RRefs of a node that cannot be reached, but may live, keep objects of this node alive for this
  /// long (docs/rref.md), and never for less than `dead_after`.
  Duration rref_lease = std::chrono::seconds(30);
};

/// What is recorded of calls (docs/profiling.md).
struct ProfilingOptions {
  /// Whether calls of peers that profile them are recorded here for those peers, with the operators
  /// and calls that they cause; and whether profilers of peers may gather the recordings of this
  /// node's profilers.
  bool enabled = true;
  /// Records the LibTorch operators of this node's calls for profilers, and shows the node's own
  /// calls to LibTorch's profiler: torch_operators() of <batchrpc/torch.hpp>. Null: calls alone.
  const detail::OperatorSource* operators = nullptr;
};

/// An exception that has left a handler.
struct HandlerError {
  std::string_view function{};  ///< the handler's name
  std::string_view caller{};    ///< the name of the node that has called it
  std::exception_ptr error{};   ///< what was thrown
  /// Whether the caller wanted no reply, so that it does not learn of the exception.
  bool of_notification = false;
};

/// What is logged, and where.
struct LogOptions {
  LogLevel level = LogLevel::warning;  ///< the lowest level that is logged
  LogSink sink{};                      ///< null: standard error
  /// Called for each call whose handler ends with an exception, also if the caller has given the
  /// call up: on the thread that ends the call, while it still holds its ExposeOptions::exclusive.
  /// The exception of a batch counts for each of its calls. It must not block. What it throws is
  /// ignored. The log has a warning, five at once and then one in 10 s, whether this is set or not.
  /// A handler that refuses a call by an error of the library, such as Overloaded, has not failed.
  std::function<void(const HandlerError&)> on_handler_error{};
};

/// What makes a run of several nodes repeatable, for tests.
struct SimulationOptions {
  /// A loop, such as a VirtualLoop, in which the node lives, handlers included.
  std::shared_ptr<Loop> loop{};
  /// The seed of random values: the incarnation, jitter. 0: the system chooses.
  std::uint64_t seed = 0;
};

/// How a node starts. An aggregate, so that a program names what it sets:
/// `Node node({.name = "worker0", .rank = 0, .world_size = 2, .join = "tcp://127.0.0.1:29500"});`
struct NodeOptions {
  /// The name, unique in the group; at most 255 bytes. Empty: "node<rank>", or a unique name if the
  /// root chooses the rank.
  std::string name{};

  /// 0 is the root: it listens at `join`, and the others find each other through it. -1: the root
  /// chooses this node's rank.
  int rank = 0;

  /// The number of nodes in the group: joining waits for all of them. 0: the group is open, nodes
  /// come and go at any time.
  int world_size = 0;

  /// Where the root listens and others join: an address of one of its `transports`, such as
  /// `tcp://host:port` or `unix:///path`; `file:///path` (the root writes its address there) or
  /// `env://` (MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE as torchrun sets them; rank and
  /// world_size are then taken from there). Empty: a root that listens on a port of its choice (see
  /// Node::address()).
  std::string join{};

  /// Where this node itself listens, a root too, instead of at `join`. Its transports also listen
  /// where they choose (Transport::own_address): TCP on loopback, unless the node joins through
  /// another address.
  std::string listen{};

  /// The name of the job. Nodes of different jobs do not talk to each other.
  std::string job{};

  /// How the node listens and reaches others. To a peer with several ways it takes the one of the
  /// highest priority. Empty: built_in_transports(), which are a Unix socket to nodes of the same
  /// host, else TCP; with a simulation.loop, none. `{tcp_transport()}`: TCP alone.
  /// `{inproc_transport(network)}`: nodes of one process (`batchrpc/transport/inproc.hpp`).
  /// docs/transports.md shows how to add one.
  std::vector<TransportFactory> transports{};

  /// How TCP connections are authenticated and encrypted. Empty: by a token of this user, which is
  /// made at first use, and on loopback only.
  SecurityOptions security{};

  /// The longest time that joining may take, including the wait for all ranks of a fixed world.
  /// After it, joining fails with JoinFailed, which names the missing ranks.
  Duration join_timeout = std::chrono::seconds(60);
  /// The timeout of a call, a creation or a wait for a peer without one of its own
  /// (Node::set_call_timeout).
  Duration call_timeout = std::chrono::seconds(60);
  /// The time that the destructor gives to calls in flight.
  Duration shutdown_timeout = std::chrono::seconds(1);
  /// For this long after joining, a call of a function that this node has not exposed waits for it.
  /// Later, or after Node::ready(), it fails with NotFound at once. So nodes that start together
  /// may call each other.
  Duration expose_within = std::chrono::seconds(5);

  /// The number of threads that run handlers: 1 to 1024. A node with a simulation.loop has none.
  int num_worker_threads = 4;
  /// The longest time, at most 1 s, for which a thread that waits for messages polls before it
  /// sleeps in the kernel: the node's I/O thread, or a thread in get(). Round trips are shorter
  /// where processors are free; it stops by itself where they are not. Zero: it does not poll. Only
  /// for nodes with threads of their own.
  Duration busy_poll{};

  /// When peers count as dead.
  LivenessOptions liveness{};
  /// The limits of memory and work.
  NodeLimits limits{};
  /// What is recorded of calls.
  ProfilingOptions profiling{};
  /// Serves the node's state by HTTP, to people and Prometheus (docs/status-page.md):
  /// status_page({.address = "127.0.0.1:8080"}) of <batchrpc/status.hpp>. Null: no page.
  std::shared_ptr<const detail::StatusPageFactory> status{};
  /// What is logged.
  LogOptions logging{};

  /// A program's own io_context, which must outlive the node. The node then has no threads. The
  /// program runs the context, handlers included, on any number of threads. Any thread may call and
  /// wait. A handler or callback there waits by a future, and must not run the context itself.
  asio::io_context* io_context = nullptr;
  /// For tests.
  SimulationOptions simulation{};
};

/// Whether and how the library retries a call that has failed. docs/errors.md says of each error
/// whether it is retried. Trivial members only, as CallOptions.
///
/// NotSent, Overloaded and the callee's ShutDown are always retried, if the call surely never ran.
/// PeerLost, Unknown, and an Overloaded of a call that has begun are retried if the function is
/// idempotent. All other errors, TimedOut too, go to the caller at once: all attempts together have
/// the call's timeout. Retries are for short peaks. A node retries at most a tenth of its calls
/// that ask for retries, and ten that it has saved up. Beyond that, the error goes to the caller
/// and says so. To wait for a peer that is away, use Node::wait_for_peer().
///
/// The arguments are encoded once and kept until the call has ended, payloads without a copy. Each
/// attempt goes to the peer by its name, even if the peer was restarted meanwhile. Calls that carry
/// an RRef, and call_into, are refused with InvalidArgument.
struct RetryOptions {
  /// The number of all attempts, from 1 on. 1: no retries.
  int attempts = 1;
  /// The pause before the second attempt. It doubles for each further one, varies by up to a fifth,
  /// and is not shorter than Overloaded::retry_after(). If it would end after the call's deadline,
  /// the error goes to the caller at once.
  Duration backoff = std::chrono::milliseconds(100);
  /// Whether running the function twice has the effect of running it once. Then a call that may
  /// have run is retried, too.
  bool idempotent = false;
};

/// A small pair that travels with a call.
struct MetadataEntry {
  std::string_view key{};    ///< at least one byte
  std::string_view value{};  ///< any bytes
};

/// The options of one call. Trivial members only, so that a temporary is safe in a co_await
/// expression (docs/getting-started.md).
struct CallOptions {
  /// The timeout. Zero: the node's `call_timeout`. kNoTimeout: none. A timeout of a second or
  /// more may end up to 10 ms early. A call that is made in a handler has at most the time that is
  /// left to the handler's call.
  Duration timeout{};
  /// Whether a call that is made in a handler is independent of the handler's call: neither the
  /// deadline nor the cancellation of that call applies.
  bool detached = false;
  /// Whether dropping the call's future cancels the call (Future::cancel), unless somebody waits
  /// for it. The future of `then()` is another one.
  bool cancel_when_dropped = false;
  /// Whether and how a failed call is retried. The default is not to.
  RetryOptions retry{};
  /// Small pairs that travel with the call (CallContext::metadata): at most 64, of 8 KiB together,
  /// with keys that are not empty. Beyond that, the call fails with InvalidArgument. Read only
  /// while the call is made. Handles such as Peer copy them.
  std::span<const MetadataEntry> metadata{};
  /// Whether a call that is made in a handler also carries the metadata of the handler's call. They
  /// follow its own, as far as there is room. A key that it has itself is not repeated.
  bool inherit_metadata = false;
  /// The trace that the call is part of, if it began elsewhere, such as in an HTTP request. Not
  /// valid, the default: the trace of the handler's call, if it has one.
  TraceContext trace{};
};

/// The state of a peer, as this node knows it.
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
  /// What its connection has proved: the name in its certificate, "token", "user UID" for a Unix
  /// socket, or empty.
  std::string identity{};
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
