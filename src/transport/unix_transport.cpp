#include "batchrpc/transport/unix_transport.hpp"

#include <utility>

#include "transport/on_sockets.hpp"
#include "transport/socket_address.hpp"
#include "transport/socket_connect.hpp"
#include "transport/socket_listener.hpp"

namespace batchrpc {

UnixTransport::UnixTransport(std::shared_ptr<SocketLoop> loop, std::uint64_t incarnation, Log log)
    : loop_(std::move(loop)),
      log_(std::move(log)),
      connects_(std::make_shared<detail::SocketConnects>(loop_->core_, log_)),
      incarnation_(incarnation) {}

UnixTransport::~UnixTransport() { connects_->stop(); }

std::vector<std::string> UnixTransport::forms() const {
  return {"unix:///path", "unix-abstract:name"};
}

void UnixTransport::check(const Address& address, AddressUse /*use*/) const {
  detail::check_unix(address);
}

std::optional<int> UnixTransport::priority(const Address& /*address*/, bool same_host) const {
  if (!same_host) return std::nullopt;
  return TransportPriority::unix_socket;
}

std::optional<Address> UnixTransport::own_address(const ListenPlan& /*plan*/) const {
  return Address::parse("unix-abstract:batchrpc-" + std::to_string(incarnation_));
}

std::unique_ptr<Listener> UnixTransport::listen(const Address& address, AcceptHandler handler) {
  detail::check_unix(address);
  return detail::listen_on_socket({.core = loop_->core_, .log = log_}, address, std::move(handler));
}

void UnixTransport::connect(const Address& address, TimePoint deadline, ConnectHandler handler) {
  detail::check_unix(address);
  connects_->start(address, deadline, std::move(handler));
}

TransportFactory unix_transport() {
  return [](const TransportContext& context) {
    return std::make_shared<UnixTransport>(detail::socket_loop_of(context, "unix_transport()"),
                                           context.incarnation, context.log);
  };
}

}  // namespace batchrpc
