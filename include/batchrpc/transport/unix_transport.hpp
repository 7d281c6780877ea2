#pragma once

#include <cstdint>
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
class SocketConnects;
}

/// Unix sockets on a SocketLoop, between processes of one host: `unix:///path`, and
/// `unix-abstract:name`, which has no file. A node listens at its own abstract name.
///
/// A socket file left by a process that has ended is replaced; that of a living process is "taken".
/// The file is removed with the listener. Both sides accept only a process of their own effective
/// user, also if one of the two is root. Nobody else may open the file.
///
/// Signals and a lack of descriptors are handled as in TcpTransport.
class BATCHRPC_EXPORT UnixTransport final : public Transport {
 public:
  /// Keeps the loop alive. `incarnation` makes the name unique at which the node listens.
  /// Warns in `log` of connections that are refused.
  explicit UnixTransport(std::shared_ptr<SocketLoop> loop, std::uint64_t incarnation = 0,
                         Log log = Log());
  /// Abandons connects in progress; their handlers are destroyed. Streams and listeners live on.
  ~UnixTransport() override;

  [[nodiscard]] std::vector<std::string> forms() const override;
  void check(const Address& address, AddressUse use) const override;
  [[nodiscard]] std::optional<int> priority(const Address& address, bool same_host) const override;
  [[nodiscard]] std::optional<Address> own_address(const ListenPlan& plan) const override;
  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override;
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override;

 private:
  const std::shared_ptr<SocketLoop> loop_;
  const Log log_;
  const std::shared_ptr<detail::SocketConnects> connects_;
  const std::uint64_t incarnation_;
};

}  // namespace batchrpc
