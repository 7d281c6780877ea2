#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "node/node_core.hpp"
#include "node/options_check.hpp"

// Where a node listens, and what it tells others of that.
namespace batchrpc {

std::string NodeCore::listen(const Address& address) {
  auto listener = transport_->listen(address, [this, weak = weak_from_this()](auto stream) {
    if (const auto self = weak.lock()) peers_->accept(std::move(stream));
  });
  const std::string text = listener->address().to_string();
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(listener));
  addresses_.push_back(text);
  return text;
}

void NodeCore::listen_for_peers(const std::optional<Address>& seen_from_root) {
  {
    const std::lock_guard lock(mutex_);
    if (listeners_.size() > 1) return;  // a second try to join
  }
  const bool is_root = !seen_from_root;
  const bool by_name = is_root && !options_.join.empty() && !joins_by_file(options_);
  std::optional<Address> main;
  if (!options_.listen.empty()) {
    main = Address::parse(options_.listen);
  } else if (by_name) {
    main = Address::parse(options_.join);
  }
  const bool sockets = own_loop_ || options_.io_context != nullptr;
  const bool on_tcp = !seen_from_root || seen_from_root->scheme() == Address::Scheme::tcp;
  const auto choice = options_.transport;
  if (by_name && options_.listen.empty()) {
    try {
      listen(*main);
    } catch (const JoinFailed& error) {
      throw JoinFailed(std::string(error.what()) +
                       ". (Rank 0 listens where the others join; a node that joins has another "
                       "NodeOptions::rank, or -1)");
    }
  } else if (main) {
    listen(*main);
  }
  if (!sockets) return;  // inproc only, and that listens already
  const bool has_tcp = main && main->scheme() == Address::Scheme::tcp;
  if (!has_tcp && choice != TransportChoice::unix_socket) {
    const bool elsewhere = on_tcp && seen_from_root && !seen_from_root->is_loopback();
    listen(Address::tcp(elsewhere ? seen_from_root->name() : "127.0.0.1", 0));
  }
  if (choice != TransportChoice::tcp) {
    listen(Address::unix_abstract("batchrpc-" + std::to_string(self_.incarnation)));
  }
  if (is_root && joins_by_file(options_)) {
    write_join_file(join_file(options_), address());
  }
}

std::string NodeCore::address() const {
  const std::lock_guard lock(mutex_);
  std::string first_socket;
  for (const std::string& text : addresses_) {
    if (text.starts_with("tcp://")) return text;
    if (first_socket.empty() && text.starts_with("unix")) first_socket = text;
  }
  return !first_socket.empty() ? first_socket : addresses_.empty() ? "" : addresses_.back();
}

Member NodeCore::self_member() const {
  const std::lock_guard lock(mutex_);
  Member member{.name = options_.name,
                .rank = rank(),
                .incarnation = self_.incarnation,
                .host = host_,
                .addresses = {}};
  for (const std::string& address : addresses_) {
    const bool inproc = address.starts_with("inproc://");
    if (!inproc || options_.network) member.addresses.push_back(address);
  }
  return member;
}

std::vector<std::string> NodeCore::addresses_to_use(const Member& member) const {
  auto addresses = usable_addresses(member, host_);
  // A transport that was chosen is used even where another would do.
  if (options_.transport != TransportChoice::automatic) {
    const char* prefix = options_.transport == TransportChoice::tcp ? "tcp" : "unix";
    std::erase_if(addresses, [&](const std::string& text) {
      return !text.starts_with(prefix) && !text.starts_with("inproc");
    });
  }
  if (!options_.network) {
    std::erase_if(addresses, [](const std::string& text) { return text.starts_with("inproc"); });
  }
  return addresses;
}

void NodeCore::add_member(const Member& member) {
  if (member.name != name()) peers_->add(member, addresses_to_use(member));
}

}  // namespace batchrpc
