#include "batchrpc/transport/composite_transport.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

CompositeTransport::~CompositeTransport() = default;

void CompositeTransport::add(std::initializer_list<Address::Scheme> schemes,
                             std::shared_ptr<Transport> transport) {
  for (const Address::Scheme scheme : schemes)
    transports_[scheme] = transport;
}

Transport& CompositeTransport::of(const Address& address) const {
  const auto found = transports_.find(address.scheme());
  if (found != transports_.end()) return *found->second;
  const std::string text = address.to_string();
  throw InvalidArgument("address " + text + ": this node has no transport for " +
                        text.substr(0, text.find(':')) + " addresses");
}

std::unique_ptr<Listener> CompositeTransport::listen(const Address& address,
                                                     AcceptHandler handler) {
  return of(address).listen(address, std::move(handler));
}

void CompositeTransport::connect(const Address& address, TimePoint deadline,
                                 ConnectHandler handler) {
  of(address).connect(address, deadline, std::move(handler));
}

}  // namespace batchrpc
