#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"

namespace batchrpc {

namespace detail {
class InprocSwitchboard;
}

/// How the connections between two hosts behave.
struct LinkOptions {
  /// How long what is written takes to arrive: `latency` plus something between zero and `jitter`,
  /// drawn for each write from the network's seed. Order is kept. Connecting takes there and back.
  Duration latency = Duration::zero();
  Duration jitter = Duration::zero();  ///< see latency

  /// How many bytes may be under way or unread, each way, before a write would block.
  std::size_t capacity = 256 * 1024;

  /// How many bytes one try moves at most: 1 makes every read and write a byte long.
  std::size_t max_chunk = std::numeric_limits<std::size_t>::max();

  /// Breaks a connection when so many bytes have been written to it, both ways together: those
  /// arrive, then both sides get std::errc::connection_reset.
  std::uint64_t break_after = std::numeric_limits<std::uint64_t>::max();
};

/// A network inside the process: addresses `inproc://name`, seen only by the transports made by the
/// same object. Over real loops it joins nodes of one process; over one VirtualLoop it is a network
/// in virtual time whose runs repeat exactly, for tests that need slow, cut and broken links. Each
/// transport belongs to a host, whose name the faults go by.
///
/// Thread-safe. Over several loops they must share a clock: all real, or one VirtualLoop.
class BATCHRPC_EXPORT InprocNetwork {
 public:
  /// `seed`: of the links' jitter.
  [[nodiscard]] static std::shared_ptr<InprocNetwork> make(std::uint64_t seed = 0);
  ~InprocNetwork();
  InprocNetwork(const InprocNetwork&) = delete;
  InprocNetwork& operator=(const InprocNetwork&) = delete;

  /// A transport for `inproc` addresses, its handlers run on `loop`. It keeps the network alive,
  /// not the loop.
  [[nodiscard]] std::shared_ptr<Transport> transport(const std::shared_ptr<Loop>& loop,
                                                     std::string host = {});

  /// For connections made from now on: between all hosts, or between `a` and `b`.
  /// @{
  void set_link(const LinkOptions& options);
  void set_link(std::string_view a, std::string_view b, const LinkOptions& options);
  /// @}

  /// Nothing passes between `a` and `b` any more, as if a cable were cut: connections stay, what is
  /// written to them waits, connects run into their deadline. Until heal().
  void partition(std::string_view a, std::string_view b);
  /// Undoes partition(): what has waited arrives.
  void heal(std::string_view a, std::string_view b);

  /// The same between `host` and all others: a host that is stopped.
  void isolate(std::string_view host);
  /// Undoes isolate().
  void rejoin(std::string_view host);

  /// Ends all connections and listeners of `host` as when its process is killed; the other sides
  /// get std::errc::connection_reset after what had been written. The host's transports work on.
  void kill(std::string_view host);

  /// Breaks the connections that there are between `a` and `b`: what is under way is lost.
  void cut(std::string_view a, std::string_view b);

  /// Connections of which one side at least is open.
  [[nodiscard]] std::size_t connections() const;

 private:
  explicit InprocNetwork(std::uint64_t seed);

  const std::shared_ptr<detail::InprocSwitchboard> switchboard_;
};

}  // namespace batchrpc
