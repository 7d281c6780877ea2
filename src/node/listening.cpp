#include "node/listening.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/tcp_address.hpp"
#include "node/options_check.hpp"

namespace batchrpc {

std::string Listening::begin(Transport::AcceptHandler handler) {
  handler_ = std::move(handler);
  return listen(transports_.to_itself()).to_string();
}

Address Listening::listen(const Address& address) {
  auto listener = transports_.listen(address, handler_);
  Address own = listener->address();
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(listener));
  addresses_.push_back(own);
  return own;
}

std::optional<Address> Listening::configured(bool is_root) const {
  if (!options_.listen.empty()) return transports_.parse(options_.listen, AddressUse::listen);
  if (!is_root || options_.join.empty() || joins_by_file(options_)) return std::nullopt;
  return transports_.parse(options_.join, AddressUse::listen);
}

void Listening::listen_where_told(const Address& address, bool is_root) {
  Address own = address;
  try {
    own = listen(address);
  } catch (const JoinFailed& error) {
    if (!is_root || !options_.listen.empty()) throw;
    throw JoinFailed(std::string(error.what()) +
                     ". (Rank 0 listens at NodeOptions::join. A node that joins needs another "
                     "NodeOptions::rank, or -1)");
  }
  const std::lock_guard lock(mutex_);
  main_ = std::move(own);
}

void Listening::listen_for_peers(const std::optional<Address>& reached_from) {
  {
    const std::lock_guard lock(mutex_);
    if (listeners_.size() > 1) return;  // this is a second try to join
    reached_from_ = reached_from;
  }
  const bool is_root = !reached_from;
  const ListenPlan plan{.configured = configured(is_root), .reached_from = reached_from};
  if (plan.configured) listen_where_told(*plan.configured, is_root);
  for (const Address& address : transports_.own_addresses(plan))
    listen(address);
  if (!is_root || !joins_by_file(options_)) return;
  const std::string own = address();
  const std::lock_guard lock(mutex_);
  join_file_.emplace(join_file(options_), own);
}

std::string Listening::address() const {
  std::vector<Address> addresses;
  {
    const std::lock_guard lock(mutex_);
    if (main_) addresses.push_back(*main_);
    addresses.insert(addresses.end(), addresses_.begin(), addresses_.end());
  }
  std::string widest;
  std::optional<int> lowest;
  for (const Address& address : addresses) {
    const auto priority = transports_.priority(address, true);
    if (!priority || (lowest && *priority >= *lowest)) continue;
    lowest = priority;
    widest = address.to_string();
  }
  return widest;
}

// A node that listens at all of its addresses announces the one from which it has reached the root.
Address Listening::for_others(const Address& address, const std::optional<Address>& reached_from) {
  if (address.scheme() != "tcp" || !reached_from || reached_from->scheme() != "tcp") return address;
  const TcpAddress own = TcpAddress::of(address);
  if (own.host != "0.0.0.0" && own.host != "::") return address;
  return TcpAddress{.host = TcpAddress::of(*reached_from).host, .port = own.port}.address();
}

std::vector<std::string> Listening::advertised() const {
  std::vector<Address> addresses;
  std::optional<Address> reached_from;
  {
    const std::lock_guard lock(mutex_);
    addresses = addresses_;
    reached_from = reached_from_;
  }
  std::vector<std::string> texts;
  for (const Address& address : addresses) {
    if (transports_.priority(address, true))
      texts.push_back(for_others(address, reached_from).to_string());
  }
  return texts;
}

void Listening::stop() {
  std::vector<std::unique_ptr<Listener>> listeners;
  const std::lock_guard lock(mutex_);
  listeners.swap(listeners_);
  join_file_.reset();
}

}  // namespace batchrpc
