#include "transport/transport_set.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/self_transport.hpp"

namespace batchrpc {

TransportSet::TransportSet(const std::vector<TransportFactory>& factories,
                           const TransportContext& context) {
  for (const TransportFactory& make : factories) {
    auto transport = make ? make(context) : nullptr;
    if (!transport) {
      throw InvalidArgument("NodeOptions::transports has a factory that returned no transport");
    }
    add(std::move(transport));
  }
  if (const auto inproc = by_scheme_.find("inproc"); inproc != by_scheme_.end()) {
    to_itself_ = inproc->second->own_address({});
  }
  if (to_itself_) return;
  add(detail::self_transport(context));
  to_itself_ = transports_.back()->own_address({});
}

TransportSet::~TransportSet() = default;

void TransportSet::add(std::shared_ptr<Transport> transport) {
  for (const std::string& form : transport->forms()) {
    const std::string scheme = form.substr(0, form.find(':'));
    if (!by_scheme_.emplace(scheme, transport.get()).second) {
      throw InvalidArgument("NodeOptions::transports has two transports for " + scheme +
                            " addresses; a node can have one for each scheme");
    }
  }
  transports_.push_back(std::move(transport));
}

Address TransportSet::parse(std::string_view text, AddressUse use) const {
  Address address = Address::parse(text);
  of(address).check(address, use);
  return address;
}

Transport& TransportSet::of(const Address& address) const {
  const auto found = by_scheme_.find(address.scheme());
  if (found != by_scheme_.end()) return *found->second;
  std::string why = "this node has no transport for " + address.scheme() + " addresses; it has " +
                    forms() + " (NodeOptions::transports)";
  if (address.scheme() == "inproc") {
    why +=
        ". To use inproc:// addresses, give all nodes of the process inproc_transport(network) "
        "there, with the same network, made by InprocNetwork::make()";
  }
  address.refuse(why);
}

std::string TransportSet::forms() const {
  std::string all;
  for (const auto& transport : transports_) {
    for (const std::string& form : transport->forms()) {
      if (form.starts_with("self:")) continue;
      all += (all.empty() ? "" : ", ") + form;
    }
  }
  return all.empty() ? "none" : all;
}

std::optional<int> TransportSet::priority(const Address& address, bool same_host) const {
  return of(address).priority(address, same_host);
}

std::unique_ptr<Listener> TransportSet::listen(const Address& address,
                                               Transport::AcceptHandler handler) {
  return of(address).listen(address, std::move(handler));
}

void TransportSet::connect(const Address& address, TimePoint deadline,
                           Transport::ConnectHandler handler) {
  of(address).connect(address, deadline, std::move(handler));
}

std::vector<Address> TransportSet::own_addresses(const ListenPlan& plan) const {
  std::vector<Address> addresses;
  for (const auto& transport : transports_) {
    auto address = transport->own_address(plan);
    if (address && *address != *to_itself_) addresses.push_back(*std::move(address));
  }
  return addresses;
}

std::vector<std::string> TransportSet::usable(const std::vector<std::string>& addresses,
                                              bool same_host) const {
  std::vector<std::pair<int, std::string>> ways;
  for (const std::string& text : addresses) {
    try {
      const auto found = priority(parse(text, AddressUse::connect), same_host);
      if (found) ways.emplace_back(*found, text);
    } catch (const InvalidArgument&) {
      continue;
    }
  }
  std::ranges::stable_sort(ways, std::greater{}, [](const auto& way) { return way.first; });
  std::vector<std::string> best_first;
  best_first.reserve(ways.size());
  for (auto& [priority, text] : ways)
    best_first.push_back(std::move(text));
  return best_first;
}

}  // namespace batchrpc
