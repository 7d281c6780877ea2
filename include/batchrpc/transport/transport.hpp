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
#include "batchrpc/base/log.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/security.hpp"
#include "batchrpc/transport/stream.hpp"
#include "batchrpc/transport/transport_factory.hpp"

namespace batchrpc {

/// The node that a transport is made for.
struct TransportContext {
  std::shared_ptr<Loop> loop{};   ///< runs the transport's handlers
  std::string node{};             ///< the node's name
  std::uint64_t incarnation = 0;  ///< differs between any two nodes; makes names unique
  Log log{};                      ///< the node's
  /// Secures streams over which anyone could reach the node; null: NodeOptions::security.insecure.
  std::shared_ptr<StreamSecurity> security{};
};

/// The purpose of an address.
enum class AddressUse : unsigned char { listen, connect };

/// What a node knows when it starts to listen.
struct ListenPlan {
  /// The address at which its options let it listen (NodeOptions::listen, or a root's `join`), for
  /// whichever transport.
  std::optional<Address> configured{};
  /// The local address of the connection over which it reached the root; a root has none.
  std::optional<Address> reached_from{};
};

/// The priorities of the library's own transports. Those of others lie between, above or below
/// them.
struct TransportPriority {
  static constexpr int tcp = 100;          ///< to any node
  static constexpr int unix_socket = 200;  ///< between nodes of one host
  static constexpr int inproc = 300;       ///< between nodes of one InprocNetwork
};

/// One way to connect nodes. It defines how its addresses are written, when it is preferred, and
/// how it listens and connects. Each node makes its own transports by NodeOptions::transports;
/// docs/transports.md shows how to add one.
///
/// Thread-safe. All handlers are called on the loop. The handler of an operation is called exactly
/// once; if the transport is destroyed before that, it is destroyed without a call.
///
/// *Above the stream.* A transport may wrap the streams of another transport, for example to
/// encrypt them. It listens and connects by the other one and makes its handshake on that stream.
/// It calls the handler with its own stream after the handshake. Until then the node does not know
/// the connection: the transport keeps connect()'s deadline, and drops accepted connections whose
/// handshake takes too long.
///
/// *Beside the stream.* Large payloads are separated from the rest of a call at a frame's boundary,
/// and today follow as bytes of the stream. A later Stream may send them in another way (shared
/// memory, a network card that reads memory). It will report that itself to the session that owns
/// it. Nothing of the transport changes then, so there is no provision for it here.
class BATCHRPC_EXPORT Transport {
 public:
  virtual ~Transport();

  /// Returns how its addresses are written, for messages: `tcp://host:port`. The part before the
  /// colon is a scheme that it serves. A node has one transport for each scheme.
  [[nodiscard]] virtual std::vector<std::string> forms() const = 0;

  /// Throws InvalidArgument (Address::refuse), with a correct example, if an address of its schemes
  /// is malformed or cannot be used in this way. The addresses that peers advertise are also
  /// checked here, and may contain anything.
  virtual void check(const Address& address, AddressUse use) const = 0;

  /// Returns how good a way this is to a peer that advertises `address`, which has been checked.
  /// The highest priority is tried first. Empty: the peer cannot be reached in this way.
  /// `same_host` is whether the peer runs on this machine, in this network namespace.
  [[nodiscard]] virtual std::optional<int> priority(const Address& address,
                                                    bool same_host) const = 0;

  /// Returns where the node listens by this transport unless its options give an address; empty:
  /// nowhere. The node advertises what Listener::address() returns.
  [[nodiscard]] virtual std::optional<Address> own_address(const ListenPlan& plan) const = 0;

  /// Gets each accepted connection.
  using AcceptHandler = std::function<void(std::unique_ptr<Stream>)>;
  /// The error code shows whether the peer refused or was not reached. It refused with
  /// std::errc::connection_refused if nobody listens there; also if a Unix socket or inproc name
  /// does not exist.
  using ConnectHandler =
      UniqueFunction<void(std::unique_ptr<Stream> stream, std::error_code error)>;

  /// Listens until the returned listener is destroyed. `handler` gets each connection, on the loop.
  /// Throws JoinFailed if the address is taken or cannot be bound, with the cause and a remedy.
  /// Throws InvalidArgument if the address has another scheme or is malformed.
  virtual std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) = 0;

  /// Connects once. Fails with std::errc::timed_out at `deadline`, by the loop's clock. Throws
  /// InvalidArgument as listen() does.
  virtual void connect(const Address& address, TimePoint deadline, ConnectHandler handler) = 0;
};

}  // namespace batchrpc
