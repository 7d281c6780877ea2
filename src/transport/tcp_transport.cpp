#include "batchrpc/transport/tcp_transport.hpp"

#include <netdb.h>

#include <algorithm>
#include <utility>

#include "batchrpc/transport/tcp_address.hpp"
#include "transport/accept_limits.hpp"
#include "transport/on_sockets.hpp"
#include "transport/resolver.hpp"
#include "transport/socket_address.hpp"
#include "transport/socket_connect.hpp"
#include "transport/socket_listener.hpp"

namespace batchrpc {

namespace {

bool is_numeric_or_local(const TcpAddress& parts) {
  detail::SocketAddress ignored;
  return parts.host == "localhost" || detail::numeric_address(parts, ignored);
}

// Whether others than this host may reach who listens there. Resolves names.
bool reaches_beyond(const TcpAddress& parts) {
  if (parts.is_loopback()) return false;
  if (is_numeric_or_local(parts)) return true;
  const auto found = detail::find_addresses(parts.host, parts.port, AI_PASSIVE);
  return std::any_of(found.addresses.begin(), found.addresses.end(),
                     [](const detail::SocketAddress& each) {
                       return !TcpAddress::of(detail::to_address(each)).is_loopback();
                     });
}

}  // namespace

TcpTransport::TcpTransport(std::shared_ptr<SocketLoop> loop, Log log,
                           std::shared_ptr<StreamSecurity> security)
    : loop_(std::move(loop)),
      log_(std::move(log)),
      security_(std::move(security)),
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
  // Where a name leads is known when it has been resolved.
  if (!security_ || !is_numeric_or_local(parts)) return;
  if (const std::string why = security_->refusal(!parts.is_loopback()); !why.empty())
    address.refuse(why);
}

std::optional<int> TcpTransport::priority(const Address& address, bool same_host) const {
  if (!same_host && TcpAddress::of(address).is_loopback()) return std::nullopt;
  return TransportPriority::tcp;
}

std::optional<Address> TcpTransport::own_address(const ListenPlan& plan) const {
  if (plan.configured && plan.configured->scheme() == "tcp") return std::nullopt;
  if (security_ && !security_->refusal(false).empty()) return std::nullopt;
  const bool beyond = !security_ || security_->refusal(true).empty();
  if (beyond && plan.reached_from && plan.reached_from->scheme() == "tcp") {
    const TcpAddress here = TcpAddress::of(*plan.reached_from);
    if (!here.is_loopback()) return TcpAddress{.host = here.host}.address();
  }
  return TcpAddress{.host = "127.0.0.1"}.address();
}

std::unique_ptr<Listener> TcpTransport::listen(const Address& address, AcceptHandler handler) {
  check(address, AddressUse::listen);
  if (security_) {
    if (const std::string why = security_->refusal(reaches_beyond(TcpAddress::of(address)));
        !why.empty()) {
      address.refuse(why);
    }
    handler = [weak = std::weak_ptr(security_),
               handler = std::move(handler)](std::unique_ptr<Stream> stream) {
      if (const auto security = weak.lock()) security->accept(std::move(stream), handler);
    };
  }
  return detail::listen_on_socket({.core = loop_->core_, .log = log_, .limits = limits_}, address,
                                  std::move(handler));
}

void TcpTransport::connect(const Address& address, TimePoint deadline, ConnectHandler handler) {
  check(address, AddressUse::connect);
  if (!security_) return connects_->start(address, deadline, std::move(handler));
  connects_->start(address, deadline,
                   [weak = std::weak_ptr(security_), deadline, handler = std::move(handler)](
                       std::unique_ptr<Stream> stream, std::error_code error) mutable {
                     if (!stream) return handler(nullptr, error);
                     const auto security = weak.lock();
                     if (!security) return;
                     security->connect(std::move(stream), deadline, std::move(handler));
                   });
}

TransportFactory tcp_transport() {
  return [](const TransportContext& context) {
    return std::make_shared<TcpTransport>(detail::socket_loop_of(context, "tcp_transport()"),
                                          context.log, context.security);
  };
}

}  // namespace batchrpc
