#include "batchrpc/transport/tcp_transport.hpp"

#include <utility>

#include "batchrpc/transport/tcp_address.hpp"
#include "transport/accept_limits.hpp"
#include "transport/on_sockets.hpp"
#include "transport/socket_connect.hpp"
#include "transport/socket_listener.hpp"

namespace batchrpc {

TcpTransport::TcpTransport(std::shared_ptr<SocketLoop> loop, Log log)
    : loop_(std::move(loop)),
      log_(std::move(log)),
      connects_(std::make_shared<detail::SocketConnects>(loop_->core_, log_)),
      limits_(std::make_shared<detail::AcceptLimits>()) {}

TcpTransport::~TcpTransport() { connects_->stop(); }

std::vector<std::string> TcpTransport::forms() const { return {"tcp://host:port"}; }

void TcpTransport::check(const Address& address, AddressUse use) const {
  const TcpAddress parts = TcpAddress::of(address);
  if (use == AddressUse::connect && parts.port == 0) {
    address.refuse(
        "port 0 means any free port, which only the listening node knows; use a fixed port, or "
        "join by a file");
  }
}

std::optional<int> TcpTransport::priority(const Address& address, bool same_host) const {
  if (!same_host && TcpAddress::of(address).is_loopback()) return std::nullopt;
  return TransportPriority::tcp;
}

std::optional<Address> TcpTransport::own_address(const ListenPlan& plan) const {
  if (plan.configured && plan.configured->scheme() == "tcp") return std::nullopt;
  if (plan.reached_from && plan.reached_from->scheme() == "tcp") {
    const TcpAddress here = TcpAddress::of(*plan.reached_from);
    if (!here.is_loopback()) return TcpAddress{.host = here.host}.address();
  }
  return TcpAddress{.host = "127.0.0.1"}.address();
}

std::unique_ptr<Listener> TcpTransport::listen(const Address& address, AcceptHandler handler) {
  check(address, AddressUse::listen);
  return detail::listen_on_socket({.core = loop_->core_, .log = log_, .limits = limits_}, address,
                                  std::move(handler));
}

void TcpTransport::connect(const Address& address, TimePoint deadline, ConnectHandler handler) {
  check(address, AddressUse::connect);
  connects_->start(address, deadline, std::move(handler));
}

TransportFactory tcp_transport() {
  return [](const TransportContext& context) {
    return std::make_shared<TcpTransport>(detail::socket_loop_of(context, "tcp_transport()"),
                                          context.log);
  };
}

}  // namespace batchrpc
