#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/transport.hpp"

namespace batchrpc {

namespace detail {
class InprocSwitchboard;
}

/// What the delays of a link look like beyond LinkOptions::latency.
enum class JitterShape : unsigned char {
  uniform,      ///< between zero and `jitter`
  exponential,  ///< of mean `jitter`
  log_normal,   ///< of median `jitter`, with a long tail: one in a hundred is ten times that and
                ///< more
};

/// How each connection between two hosts behaves. Connections differ in what is drawn for them, so
/// that what is sent over two of them may overtake; within one, order is kept.
struct LinkOptions {
  /// How long what is written takes to arrive: `latency` plus something drawn for each write from
  /// the network's seed. Connecting takes the latency there and back. By the receiving loop's
  /// clock.
  Duration latency = Duration::zero();
  Duration jitter = Duration::zero();               ///< see latency and JitterShape
  JitterShape jitter_shape = JitterShape::uniform;  ///< see latency

  /// In bytes per second, each way; zero: no limit. What is written then arrives the later the more
  /// was written before it.
  std::uint64_t bandwidth = 0;

  /// How fast each side can read, in bytes per second; zero: at once. A writer finds the connection
  /// full.
  std::uint64_t read_rate = 0;

  /// How many bytes may be under way or unread, each way, before a write would block.
  std::size_t capacity = 256 * 1024;

  /// How many bytes one try moves at most: 1 makes every read and write a byte long.
  std::size_t max_chunk = std::numeric_limits<std::size_t>::max();

  /// Breaks a connection when so many bytes have been written to it, both ways together: those
  /// arrive, then both sides get std::errc::connection_reset.
  std::uint64_t break_after = std::numeric_limits<std::uint64_t>::max();

  /// Breaks each connection at a byte drawn from the seed, on average after so many bytes, both
  /// ways together; zero: not at all. Of what is under way or unread then, all, a part or nothing
  /// arrives, before both sides get std::errc::connection_reset.
  std::uint64_t break_every = 0;
};

/// A network inside the process: addresses `inproc://name`, seen only by the transports made by the
/// same object. Nodes have it by inproc_transport(network) in NodeOptions::transports. Over real
/// loops it joins nodes of one process; over one VirtualLoop it is a network in virtual time whose
/// runs repeat exactly, for tests that need slow, cut and broken links. Each transport belongs to a
/// host, whose name the faults go by.
///
/// Thread-safe. Over several loops they must share a clock: all real, or one VirtualLoop.
class BATCHRPC_EXPORT InprocNetwork {
 public:
  /// `seed`: of what the links draw.
  [[nodiscard]] static std::shared_ptr<InprocNetwork> make(std::uint64_t seed = 0);
  ~InprocNetwork();
  InprocNetwork(const InprocNetwork&) = delete;
  InprocNetwork& operator=(const InprocNetwork&) = delete;

  /// A transport for `inproc` addresses, its handlers run on `loop`. It keeps the network alive,
  /// not the loop.
  [[nodiscard]] std::shared_ptr<Transport> transport(const std::shared_ptr<Loop>& loop,
                                                     std::string host = {});
  /// The same for a node: its name is the host's.
  [[nodiscard]] std::shared_ptr<Transport> transport(const TransportContext& node);

  /// For connections made from now on: between all hosts, or between `a` and `b`.
  /// @{
  void set_link(const LinkOptions& options);
  void set_link(std::string_view a, std::string_view b, const LinkOptions& options);
  /// @}

  /// Nothing passes between `a` and `b` any more, as if a cable were cut: connections stay, what is
  /// written to them waits, connects run into their deadline. Until heal().
  void partition(std::string_view a, std::string_view b);
  /// The same in one direction: what `to` writes still arrives at `from`. Nobody connects.
  void partition_one_way(std::string_view from, std::string_view to);
  /// Undoes both: what has waited arrives.
  void heal(std::string_view a, std::string_view b);

  /// The same between `host` and all others: a host that is stopped.
  void isolate(std::string_view host);
  /// Undoes isolate().
  void rejoin(std::string_view host);

  /// Ends all connections and listeners of `host` as when its process is killed; the other sides
  /// get std::errc::connection_reset after what had been written. The host's transports work on.
  void kill(std::string_view host);

  /// Ends all connections between `a` and `b` now: both sides get std::errc::connection_reset, what
  /// is under way is lost. They may connect again.
  void cut(std::string_view a, std::string_view b);

  /// As when a machine loses its power: nobody hears of the host's connections any more, and
  /// connects to it run into their deadline until somebody listens at that address again. The
  /// host's transports of now reach nobody for good; one made later is of a host that was started
  /// again.
  void power_off(std::string_view host);

  /// Calls `sink` with a line for each thing that happens: a connection is made, refused, read from
  /// (with a hash of the bytes), closed or broken, a fault begins or ends. On the thread on which
  /// it happens; the sink must not throw. Null: no more.
  void set_trace(std::function<void(std::string_view event)> sink);

  /// Connections of which one side at least is open.
  [[nodiscard]] std::size_t connections() const;

 private:
  explicit InprocNetwork(std::uint64_t seed);

  const std::shared_ptr<detail::InprocSwitchboard> switchboard_;
};

/// Has nodes meet in `network`, each as the host of its name. Throws InvalidArgument for null.
[[nodiscard]] BATCHRPC_EXPORT TransportFactory
inproc_transport(std::shared_ptr<InprocNetwork> network);

}  // namespace batchrpc
