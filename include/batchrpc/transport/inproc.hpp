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

/// How each connection between two hosts behaves. Each connection draws its own delays, so data on
/// one connection may overtake data on another. Within a connection, order is kept.
struct LinkOptions {
  /// The time that written data takes to arrive: `latency`, plus a delay drawn for each write from
  /// the network's seed. Connecting takes one round trip. Times are measured by the receiving
  /// loop's clock.
  Duration latency = Duration::zero();
  Duration jitter = Duration::zero();               ///< see latency and JitterShape
  JitterShape jitter_shape = JitterShape::uniform;  ///< see latency

  /// The bandwidth in each direction, in bytes per second; zero means no limit. Data waits for the
  /// data written before it.
  std::uint64_t bandwidth = 0;

  /// How fast each side can read, in bytes per second; zero means at once. A slow reader fills the
  /// connection of the writer.
  std::uint64_t read_rate = 0;

  /// How many bytes may be in flight or unread, in each direction, before a write would block.
  std::size_t capacity = 256 * 1024;

  /// The largest number of bytes that one read or write moves. With 1, each moves one byte.
  std::size_t max_chunk = std::numeric_limits<std::size_t>::max();

  /// Breaks a connection after this many bytes, counted in both directions together. These bytes
  /// arrive, then both sides get std::errc::connection_reset.
  std::uint64_t break_after = std::numeric_limits<std::uint64_t>::max();

  /// Breaks each connection at a byte drawn from the seed, on average after this many bytes in both
  /// directions together; zero means never. All, some or none of the data that is then in flight or
  /// unread arrives. Then both sides get std::errc::connection_reset.
  std::uint64_t break_every = 0;
};

/// A network inside the process. Its addresses are `inproc://name`, and only its own transports can
/// reach them. Nodes use it with inproc_transport(network) in NodeOptions::transports. Over real
/// loops it connects nodes of one process. Over one VirtualLoop it is a network in virtual time
/// whose runs repeat exactly, for tests that need slow, cut and broken links. Each transport
/// belongs to a host; faults are given by host name.
///
/// Thread-safe. Its loops must share a clock: either all are real, or all belong to one
/// VirtualLoop.
class BATCHRPC_EXPORT InprocNetwork {
 public:
  /// Makes a network whose links draw from `seed`.
  [[nodiscard]] static std::shared_ptr<InprocNetwork> make(std::uint64_t seed = 0);
  ~InprocNetwork();
  InprocNetwork(const InprocNetwork&) = delete;
  InprocNetwork& operator=(const InprocNetwork&) = delete;

  /// Returns a transport for `inproc` addresses whose handlers run on `loop`. It keeps the network
  /// alive, but not the loop.
  [[nodiscard]] std::shared_ptr<Transport> transport(const std::shared_ptr<Loop>& loop,
                                                     std::string host = {});
  /// Returns the same for a node; the host has the node's name.
  [[nodiscard]] std::shared_ptr<Transport> transport(const TransportContext& node);

  /// Sets the behaviour of connections made from now on: between all hosts, or between `a` and `b`.
  /// @{
  void set_link(const LinkOptions& options);
  void set_link(std::string_view a, std::string_view b, const LinkOptions& options);
  /// @}

  /// Stops all traffic between `a` and `b` until heal(), as if a cable were cut. Connections stay,
  /// written data waits, and connects run into their deadlines.
  void partition(std::string_view a, std::string_view b);
  /// Does the same in one direction: data from `to` still arrives at `from`. No new connections can
  /// be made.
  void partition_one_way(std::string_view from, std::string_view to);
  /// Undoes both. Waiting data arrives.
  void heal(std::string_view a, std::string_view b);

  /// Stops all traffic between `host` and all others, as if the host were stopped.
  void isolate(std::string_view host);
  /// Undoes isolate().
  void rejoin(std::string_view host);

  /// Ends all connections and listeners of `host`, as if its process were killed. The other sides
  /// get std::errc::connection_reset after the data that was written before. The host's transports
  /// keep working.
  void kill(std::string_view host);

  /// Ends all connections between `a` and `b` now. Both sides get std::errc::connection_reset, and
  /// data in flight is lost. They may connect again.
  void cut(std::string_view a, std::string_view b);

  /// Acts as if the machine lost power. The other sides of the host's connections are not notified,
  /// and connects to it run into their deadlines until a listener is opened at that address again.
  /// The host's present transports reach nobody from now on; a transport made later belongs to the
  /// restarted host.
  void power_off(std::string_view host);

  /// Calls `sink` with a line for each event: a connection is made, refused, read from (with a hash
  /// of the bytes), closed or broken, or a fault begins or ends. The call is made on the thread of
  /// the event, and must not throw. Null ends the trace.
  void set_trace(std::function<void(std::string_view event)> sink);

  /// Returns the number of connections that are open on at least one side.
  [[nodiscard]] std::size_t connections() const;

 private:
  explicit InprocNetwork(std::uint64_t seed);

  const std::shared_ptr<detail::InprocSwitchboard> switchboard_;
};

/// Returns a factory whose nodes meet in `network`, each as the host of its own name. Throws
/// InvalidArgument for null.
[[nodiscard]] BATCHRPC_EXPORT TransportFactory
inproc_transport(std::shared_ptr<InprocNetwork> network);

}  // namespace batchrpc
