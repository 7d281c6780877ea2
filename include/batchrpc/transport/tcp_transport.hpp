#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/base/log.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/transport.hpp"

namespace batchrpc {

namespace detail {
class AcceptLimits;
class SocketConnects;
}  // namespace detail

/// TCP on a SocketLoop: `tcp://host:port`, see TcpAddress.
///
/// Names are resolved without blocking the loop (but listen() resolves on the calling thread).
/// Their addresses are tried in turn, each for its share of the remaining time. Small writes are
/// sent at once (TCP_NODELAY). A node listens on a loopback port, or, if it reached the root from
/// another address, at that address.
///
/// Connections are secured by TLS 1.3 (SecurityOptions). Without a token or certificates of the
/// group, it uses loopback addresses only, and throws InvalidArgument for others.
///
/// SIGPIPE is never raised. At most three quarters of the descriptors that the process may have
/// (`ulimit -n`) are for accepted connections, and half of these for those from one address of
/// another machine. If the process runs out of descriptors, accepting pauses and is retried;
/// connections that wait for longer than a second are closed. The log tells each of these.
class BATCHRPC_EXPORT TcpTransport final : public Transport {
 public:
  /// Keeps the loop alive. Warns in `log` of connections that are refused. `security` secures each
  /// connection; null: they are in plain text, and anyone can connect.
  explicit TcpTransport(std::shared_ptr<SocketLoop> loop, Log log = Log(),
                        std::shared_ptr<StreamSecurity> security = nullptr);
  /// Abandons connects in progress; their handlers are destroyed. Streams and listeners live on.
  ~TcpTransport() override;

  [[nodiscard]] std::vector<std::string> forms() const override;
  void check(const Address& address, AddressUse use) const override;
  [[nodiscard]] std::optional<int> priority(const Address& address, bool same_host) const override;
  [[nodiscard]] std::optional<Address> own_address(const ListenPlan& plan) const override;
  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override;
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override;

 private:
  const std::shared_ptr<SocketLoop> loop_;
  const Log log_;
  const std::shared_ptr<StreamSecurity> security_;
  const std::shared_ptr<detail::SocketConnects> connects_;
  const std::shared_ptr<detail::AcceptLimits> limits_;
};

}  // namespace batchrpc
