#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/call/node_options.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// Where a node listens, and what it tells others of that. Thread-safe.
class Listening {
 public:
  /// Both outlive it.
  Listening(const NodeOptions& options, TransportSet& transports)
      : options_(options), transports_(transports) {}

  /// Begins to listen for the node's calls to itself; `handler` gets these connections, and those
  /// of peers later. Returns the address. Throws as Transport::listen().
  std::string begin(Transport::AcceptHandler handler);

  /// Listens where the options and the transports say; does nothing the second time.
  /// `reached_from`: this side of the connection by which the node has reached the root; a root has
  /// none. Throws as Transport::listen().
  void listen_for_peers(const std::optional<Address>& reached_from);

  /// Where most others reach it: of the way with the lowest priority, and where the options say, if
  /// that is one. Empty: nobody does.
  [[nodiscard]] std::string address() const;
  /// What others are told. In the order in which it began to listen.
  [[nodiscard]] std::vector<std::string> advertised() const;

  /// Accepts no more; says the same of addresses as before.
  void stop();

 private:
  Address listen(const Address& address);
  [[nodiscard]] std::optional<Address> configured(bool is_root) const;
  void listen_where_told(const Address& address, bool is_root);

  const NodeOptions& options_;
  TransportSet& transports_;
  Transport::AcceptHandler handler_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Address> addresses_;
  std::optional<Address> main_;  // where the options say, if they do
};

}  // namespace batchrpc
