#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/call/node_options.hpp"
#include "node/join_file.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// The listeners of a node, and the addresses that it announces to others. Thread-safe.
class Listening {
 public:
  /// Both must outlive this.
  Listening(const NodeOptions& options, TransportSet& transports)
      : options_(options), transports_(transports) {}

  /// Begins to listen for the node's calls to itself. `handler` gets these connections, and later
  /// those of peers. Returns the address. Throws the errors of Transport::listen().
  std::string begin(Transport::AcceptHandler handler);

  /// Listens at the addresses of the options and the transports. Does nothing the second time.
  /// `reached_from` is this side of the connection by which the node has reached the root, and
  /// empty for a root. Throws the errors of Transport::listen().
  void listen_for_peers(const std::optional<Address>& reached_from);

  /// Returns the address at which most nodes can reach it: the one with the lowest priority, and of
  /// equal ones that of the options. Empty if no other node can reach it.
  [[nodiscard]] std::string address() const;
  /// Returns the addresses for others, in the order in which it began to listen.
  [[nodiscard]] std::vector<std::string> advertised() const;

  /// Stops accepting connections. The addresses stay as they were.
  void stop();

 private:
  Address listen(const Address& address);
  [[nodiscard]] std::optional<Address> configured(bool is_root) const;
  [[nodiscard]] static Address for_others(const Address& address,
                                          const std::optional<Address>& reached_from);
  void listen_where_told(const Address& address, bool is_root);

  const NodeOptions& options_;
  TransportSet& transports_;
  Transport::AcceptHandler handler_;

  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Address> addresses_;
  std::optional<Address> reached_from_;  // as in listen_for_peers(), which others have seen
  std::optional<Address> main_;          // the address of the options, if they have one
  std::optional<JoinFile> join_file_;    // of a root
};

}  // namespace batchrpc
