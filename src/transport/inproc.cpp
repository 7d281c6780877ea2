#include "batchrpc/transport/inproc.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "transport/inproc_connection.hpp"

namespace batchrpc {
namespace {

using detail::InprocConnection;

/// Two hosts, whichever comes first.
std::pair<std::string, std::string> link(std::string_view a, std::string_view b) {
  return {std::string(std::min(a, b)), std::string(std::max(a, b))};
}

void run_at(const std::weak_ptr<Loop>& weak, Duration delay, Task task) {
  const auto loop = weak.lock();
  if (!loop) return;
  if (delay == Duration::zero()) {
    loop->post(std::move(task));
  } else {
    loop->schedule(loop->now() + delay, std::move(task));
  }
}

struct Listening {
  std::weak_ptr<Loop> loop;
  std::string host;
  std::string name;
  Transport::AcceptHandler handler;
  std::atomic<bool> closed{false};
};

struct Connecting {
  std::weak_ptr<Loop> loop;
  std::string host;
  std::string name;
  Transport::ConnectHandler handler;
  const void* transport;
  TimerId deadline = 0;
  bool answered = false;
};

}  // namespace

/// All with `mutex` held. Handlers are run by tasks of their loops, so never under it.
struct InprocNetwork::State {
  explicit State(std::uint64_t seed) : random(seed) {}

  [[nodiscard]] bool is_cut(const std::string& a, const std::string& b) const {
    return isolated.contains(a) || isolated.contains(b) || cut.contains(link(a, b));
  }
  [[nodiscard]] LinkOptions options(const std::string& a, const std::string& b) const {
    const auto found = links.find(link(a, b));
    return found != links.end() ? found->second : all_links;
  }
  void try_connect(const std::shared_ptr<InprocNetwork>& network,
                   const std::shared_ptr<Connecting>& connecting);
  void heal_all(const std::shared_ptr<InprocNetwork>& network);

  template <class Visit>
  void for_each_connection(Visit visit) {
    std::erase_if(connections, [](const auto& weak) { return weak.expired(); });
    for (const auto& weak : connections) {
      if (const auto connection = weak.lock()) visit(connection);
    }
  }

  std::mutex mutex;
  std::mt19937_64 random;
  LinkOptions all_links;
  std::map<std::pair<std::string, std::string>, LinkOptions> links;
  std::set<std::pair<std::string, std::string>> cut;
  std::set<std::string> isolated;
  std::map<std::string, std::shared_ptr<Listening>> listeners;
  std::set<std::shared_ptr<Connecting>> connects;  // that wait for an answer or for their deadline
  std::vector<std::weak_ptr<InprocConnection>> connections;
  std::size_t prune_at = 64;
};

/// A host's access to the network.
class InprocTransport final : public Transport {
 public:
  InprocTransport(std::shared_ptr<InprocNetwork> network, const std::shared_ptr<Loop>& loop,
                  std::string host)
      : network_(std::move(network)), loop_(loop), host_(std::move(host)) {}

  ~InprocTransport() override {
    std::vector<ConnectHandler> given_up;  // destroyed after the lock
    InprocNetwork::State& state = *network_->state_;
    const std::lock_guard lock(state.mutex);
    std::erase_if(state.connects, [&](const auto& connecting) {
      if (connecting->transport != this) return false;
      given_up.push_back(std::move(connecting->handler));
      return true;
    });
  }

  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override;
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override;

  /// Takes the handler of a connect that is not over yet.
  static ConnectHandler finish(InprocNetwork& network,
                               const std::shared_ptr<Connecting>& connecting) {
    const std::lock_guard lock(network.state_->mutex);
    if (network.state_->connects.erase(connecting) == 0) return nullptr;
    return std::move(connecting->handler);
  }
  static std::mutex& mutex_of(InprocNetwork& network) { return network.state_->mutex; }
  static auto& listeners_of(InprocNetwork& network) { return network.state_->listeners; }

 private:
  void check_scheme(const Address& address) const {
    if (address.scheme() == Address::Scheme::inproc) return;
    throw InvalidArgument("address " + address.to_string() +
                          ": an InprocNetwork knows inproc:// addresses only");
  }

  const std::shared_ptr<InprocNetwork> network_;
  const std::weak_ptr<Loop> loop_;
  const std::string host_;
};

namespace {

class InprocListener final : public Listener {
 public:
  InprocListener(std::shared_ptr<InprocNetwork> network, std::shared_ptr<Listening> listening,
                 Address address)
      : network_(std::move(network)),
        listening_(std::move(listening)),
        address_(std::move(address)) {}
  ~InprocListener() override {
    listening_->closed = true;
    const std::lock_guard lock(InprocTransport::mutex_of(*network_));
    auto& listeners = InprocTransport::listeners_of(*network_);
    const auto found = listeners.find(listening_->name);
    if (found != listeners.end() && found->second == listening_) listeners.erase(found);
  }
  [[nodiscard]] Address address() const override { return address_; }

 private:
  const std::shared_ptr<InprocNetwork> network_;
  const std::shared_ptr<Listening> listening_;
  const Address address_;
};

}  // namespace

std::unique_ptr<Listener> InprocTransport::listen(const Address& address, AcceptHandler handler) {
  check_scheme(address);
  auto listening = std::make_shared<Listening>();
  listening->loop = loop_;
  listening->host = host_;
  listening->name = address.name();
  listening->handler = std::move(handler);
  const std::lock_guard lock(network_->state_->mutex);
  if (!network_->state_->listeners.emplace(address.name(), listening).second) {
    throw JoinFailed("cannot listen on " + address.to_string() +
                     ": the address is taken in this network. Choose another name");
  }
  return std::make_unique<InprocListener>(network_, std::move(listening), address);
}

void InprocTransport::connect(const Address& address, TimePoint deadline, ConnectHandler handler) {
  check_scheme(address);
  auto connecting = std::make_shared<Connecting>();
  connecting->loop = loop_;
  connecting->host = host_;
  connecting->name = address.name();
  connecting->handler = std::move(handler);
  connecting->transport = this;
  const auto loop = loop_.lock();
  if (!loop) return;
  const std::lock_guard lock(network_->state_->mutex);
  network_->state_->connects.insert(connecting);
  connecting->deadline = loop->schedule(deadline, [network = std::weak_ptr(network_), connecting] {
    const auto living = network.lock();
    if (!living) return;
    if (auto taken = finish(*living, connecting)) {
      taken(nullptr, std::make_error_code(std::errc::timed_out));
    }
  });
  network_->state_->try_connect(network_, connecting);
}

void InprocNetwork::State::try_connect(const std::shared_ptr<InprocNetwork>& network,
                                       const std::shared_ptr<Connecting>& connecting) {
  const auto found = listeners.find(connecting->name);
  const std::shared_ptr<Listening> listening = found != listeners.end() ? found->second : nullptr;
  // A name that nobody has is refused by the first host that is not cut off.
  if (isolated.contains(connecting->host)) return;
  if (listening && is_cut(connecting->host, listening->host)) return;

  std::shared_ptr<InprocConnection> connection;
  LinkOptions link_options = all_links;
  if (listening) {
    link_options = options(connecting->host, listening->host);
    connection = std::make_shared<InprocConnection>(
        link_options, random(), std::array{connecting->loop, listening->loop},
        std::array{connecting->host, listening->host}, false);
    if (connections.size() >= prune_at) {
      std::erase_if(connections, [](const auto& weak) { return weak.expired(); });
      prune_at = 2 * connections.size() + 64;
    }
    connections.push_back(connection);
    run_at(listening->loop, link_options.latency,
           [listening, stream = detail::make_inproc_stream(
                           connection, 1, "inproc host '" + connecting->host + "'")]() mutable {
             if (!listening->closed) listening->handler(std::move(stream));
           });
  }
  connecting->answered = true;
  auto stream = connection
                    ? detail::make_inproc_stream(connection, 0, "inproc://" + connecting->name)
                    : nullptr;
  run_at(connecting->loop, 2 * link_options.latency,
         [network, connecting, stream = std::move(stream)]() mutable {
           auto handler = InprocTransport::finish(*network, connecting);
           if (!handler) return;
           if (const auto loop = connecting->loop.lock()) loop->cancel(connecting->deadline);
           const bool refused = stream == nullptr;
           handler(std::move(stream), refused ? std::make_error_code(std::errc::connection_refused)
                                              : std::error_code{});
         });
}

void InprocNetwork::State::heal_all(const std::shared_ptr<InprocNetwork>& network) {
  for_each_connection([&](const auto& connection) {
    connection->hold(is_cut(connection->host(0), connection->host(1)));
  });
  for (const auto& connecting : std::vector(connects.begin(), connects.end())) {
    if (!connecting->answered) try_connect(network, connecting);
  }
}

std::shared_ptr<InprocNetwork> InprocNetwork::make(std::uint64_t seed) {
  return std::shared_ptr<InprocNetwork>(new InprocNetwork(seed));
}

InprocNetwork::InprocNetwork(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}
InprocNetwork::~InprocNetwork() = default;

std::shared_ptr<Transport> InprocNetwork::transport(const std::shared_ptr<Loop>& loop,
                                                    std::string host) {
  return std::make_shared<InprocTransport>(shared_from_this(), loop, std::move(host));
}

void InprocNetwork::set_link(const LinkOptions& options) {
  const std::lock_guard lock(state_->mutex);
  state_->all_links = options;
}

void InprocNetwork::set_link(std::string_view a, std::string_view b, const LinkOptions& options) {
  const std::lock_guard lock(state_->mutex);
  state_->links[link(a, b)] = options;
}

void InprocNetwork::partition(std::string_view a, std::string_view b) {
  const std::lock_guard lock(state_->mutex);
  state_->cut.insert(link(a, b));
  state_->heal_all(shared_from_this());
}

void InprocNetwork::heal(std::string_view a, std::string_view b) {
  const std::lock_guard lock(state_->mutex);
  state_->cut.erase(link(a, b));
  state_->heal_all(shared_from_this());
}

void InprocNetwork::isolate(std::string_view host) {
  const std::lock_guard lock(state_->mutex);
  state_->isolated.emplace(host);
  state_->heal_all(shared_from_this());
}

void InprocNetwork::rejoin(std::string_view host) {
  const std::lock_guard lock(state_->mutex);
  state_->isolated.erase(std::string(host));
  state_->heal_all(shared_from_this());
}

void InprocNetwork::kill(std::string_view host) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->listeners, [&](const auto& entry) { return entry.second->host == host; });
  state_->for_each_connection([&](const auto& connection) {
    if (connection->host(0) == host || connection->host(1) == host) connection->reset();
  });
}

std::size_t InprocNetwork::connections() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::size_t>(std::count_if(state_->connections.begin(),
                                                state_->connections.end(),
                                                [](const auto& weak) { return !weak.expired(); }));
}

}  // namespace batchrpc
