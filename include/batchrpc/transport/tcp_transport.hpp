#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/transport.hpp"

namespace batchrpc {

namespace detail {
class SocketConnects;
}

/// TCP on a SocketLoop: `tcp://host:port`, see TcpAddress.
///
/// Names are resolved without holding up the loop (by listen(): at once, on the calling thread),
/// and their addresses tried in turn, each for its share of the time left. Small writes leave at
/// once (TCP_NODELAY). A node listens on a port of loopback, unless it has reached the root from
/// another address: then there.
///
/// No SIGPIPE is ever raised. When the process has run out of descriptors, accepting pauses and is
/// tried again.
class BATCHRPC_EXPORT TcpTransport final : public Transport {
 public:
  /// Keeps the loop alive.
  explicit TcpTransport(std::shared_ptr<SocketLoop> loop);
  /// Gives up the connects under way; their handlers are destroyed. Streams and listeners live on.
  ~TcpTransport() override;

  [[nodiscard]] std::vector<std::string> forms() const override;
  void check(const Address& address, AddressUse use) const override;
  [[nodiscard]] std::optional<int> priority(const Address& address, bool same_host) const override;
  [[nodiscard]] std::optional<Address> own_address(const ListenPlan& plan) const override;
  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override;
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override;

 private:
  const std::shared_ptr<SocketLoop> loop_;
  const std::shared_ptr<detail::SocketConnects> connects_;
};

}  // namespace batchrpc
