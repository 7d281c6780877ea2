#include "batchrpc/transport/socket_transport.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/socket_connect.hpp"
#include "transport/socket_listener.hpp"

namespace batchrpc {
namespace {

void check_scheme(const Address& address) {
  if (address.scheme() != Address::Scheme::inproc) return;
  throw InvalidArgument(
      "address " + address.to_string() +
      ": sockets know tcp://, unix:// and unix-abstract: only; for inproc:// give the "
      "node a transport of an InprocNetwork");
}

}  // namespace

SocketTransport::SocketTransport(std::shared_ptr<SocketLoop> loop)
    : loop_(std::move(loop)), connects_(std::make_shared<detail::SocketConnects>(loop_->core_)) {}

SocketTransport::~SocketTransport() { connects_->stop(); }

std::unique_ptr<Listener> SocketTransport::listen(const Address& address, AcceptHandler handler) {
  check_scheme(address);
  return detail::listen_on_socket(loop_->core_, address, std::move(handler));
}

void SocketTransport::connect(const Address& address, TimePoint deadline, ConnectHandler handler) {
  check_scheme(address);
  connects_->start(address, deadline, std::move(handler));
}

}  // namespace batchrpc
