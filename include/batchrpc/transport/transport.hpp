#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "batchrpc/base/address.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"
#include "batchrpc/transport/transport_factory.hpp"

namespace batchrpc {

/// The node that a transport is made for.
struct TransportContext {
  std::shared_ptr<Loop> loop{};  ///< runs the transport's handlers
  std::string node{};            ///< the node's name
  std::uint64_t incarnation =
      0;  ///< differs between any two nodes: for names that nobody else takes
};

/// What an address is to be used for.
enum class AddressUse : unsigned char { listen, connect };

/// What a node knows when it begins to listen.
struct ListenPlan {
  /// Where its options have it listen (NodeOptions::listen, or a root's `join`), by whatever
  /// transport.
  std::optional<Address> configured{};
  /// This side of the connection by which it has reached the root; a root has none.
  std::optional<Address> reached_from{};
};

/// The priorities of the library's own transports. Others lie between them, above or below.
struct TransportPriority {
  static constexpr int tcp = 100;          ///< to any node
  static constexpr int unix_socket = 200;  ///< between nodes of one host
  static constexpr int inproc = 300;       ///< between nodes of one InprocNetwork
};

/// One way to connect nodes. All that batchrpc knows of it is said here: how its addresses are
/// written, when it is preferred, how it listens and connects. A node makes its transports by
/// NodeOptions::transports, each for itself; docs/transports.md shows how to add one.
///
/// Thread-safe. All handlers are called on the loop. An operation's handler is called exactly once,
/// unless the transport is destroyed before: then it is destroyed.
///
/// *Above the stream.* A transport may wrap the streams of another one, as encryption does: it
/// listens and connects by that one, makes its handshake on the stream that it gets, and calls the
/// handler with a stream of its own when the handshake is over. Until then the node knows nothing
/// of the connection: the transport keeps connect()'s deadline, and drops accepted connections
/// whose handshake takes too long.
///
/// *Beside the stream.* Large payloads leave the rest of a call at a frame's boundary, and today
/// follow as bytes of the stream. A later Stream may take them by another way (blocks of shared
/// memory, a network card that reads memory): it will say so itself, to the session that owns it.
/// Nothing of the transport changes then, so that no place is kept for it here.
class BATCHRPC_EXPORT Transport {
 public:
  virtual ~Transport();

  /// How its addresses are written, for messages: `tcp://host:port`. What stands before the colon
  /// is a scheme that it serves. A node has one transport for each scheme.
  [[nodiscard]] virtual std::vector<std::string> forms() const = 0;

  /// Throws InvalidArgument (Address::refuse) for an address of its schemes that is written wrongly
  /// or cannot be used so, with an example of what is right. The addresses that peers advertise
  /// are checked here, too: they may be anything.
  virtual void check(const Address& address, AddressUse use) const = 0;

  /// How good a way this is to a peer that advertises `address`, which has been checked: the
  /// highest is tried first. Empty: the peer cannot be reached so. `same_host`: whether the peer
  /// runs on this machine, in this network namespace.
  [[nodiscard]] virtual std::optional<int> priority(const Address& address,
                                                    bool same_host) const = 0;

  /// Where the node listens by this transport without being told to; empty: nowhere. It advertises
  /// what Listener::address() says.
  [[nodiscard]] virtual std::optional<Address> own_address(const ListenPlan& plan) const = 0;

  /// Gets each connection that was accepted.
  using AcceptHandler = std::function<void(std::unique_ptr<Stream>)>;
  /// The error code says whether the peer refused (std::errc::connection_refused: nobody listens
  /// there; also for a Unix socket or inproc name that does not exist) or was not reached.
  using ConnectHandler =
      UniqueFunction<void(std::unique_ptr<Stream> stream, std::error_code error)>;

  /// Listens; `handler` gets each connection, on the loop, until the listener is destroyed. Throws
  /// JoinFailed when the address is taken or cannot be bound (the message says which and what to
  /// do), InvalidArgument for one that is not of its schemes or is written wrongly.
  virtual std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) = 0;

  /// Connects once; gives up with std::errc::timed_out at `deadline` on the loop's clock. Throws
  /// InvalidArgument as listen() does.
  virtual void connect(const Address& address, TimePoint deadline, ConnectHandler handler) = 0;
};

}  // namespace batchrpc
