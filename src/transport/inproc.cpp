#include "batchrpc/transport/inproc.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/inproc_switchboard.hpp"
#include "transport/self_transport.hpp"

namespace batchrpc {
namespace {

using detail::InprocConnecting;
using detail::InprocListening;
using detail::InprocSwitchboard;

class InprocListener final : public Listener {
 public:
  InprocListener(std::shared_ptr<InprocSwitchboard> switchboard,
                 std::shared_ptr<InprocListening> listening, Address address)
      : switchboard_(std::move(switchboard)),
        listening_(std::move(listening)),
        address_(std::move(address)) {}
  ~InprocListener() override { switchboard_->unlisten(listening_); }
  [[nodiscard]] Address address() const override { return address_; }

 private:
  const std::shared_ptr<InprocSwitchboard> switchboard_;
  const std::shared_ptr<InprocListening> listening_;
  const Address address_;
};

// The addresses of a node's own network, which nobody else sees, have the other scheme.
constexpr const char* kShared = "inproc";
constexpr const char* kOwn = "self";

class InprocTransport final : public Transport {
 public:
  InprocTransport(std::shared_ptr<InprocSwitchboard> switchboard, const TransportContext& node,
                  std::string scheme)
      : switchboard_(std::move(switchboard)),
        loop_(node.loop),
        host_(node.node),
        incarnation_(node.incarnation),
        scheme_(std::move(scheme)),
        start_(switchboard_->starts(host_)) {}
  ~InprocTransport() override { switchboard_->give_up(this); }

  [[nodiscard]] std::vector<std::string> forms() const override { return {scheme_ + "://name"}; }

  void check(const Address& address, AddressUse /*use*/) const override {
    constexpr std::size_t kMaxName = 1024;
    if (!address.to_string().starts_with(scheme_ + "://")) {
      address.refuse("an InprocNetwork accepts only " + scheme_ + "://name addresses");
    }
    if (address.name().size() > kMaxName) {
      address.refuse("the name is longer than " + std::to_string(kMaxName) + " bytes");
    }
    if (address.name().find('\0') != std::string::npos) {
      address.refuse("the name contains a zero byte");
    }
  }

  [[nodiscard]] std::optional<int> priority(const Address& /*address*/,
                                            bool /*same_host*/) const override {
    if (scheme_ == kOwn) return std::nullopt;
    return TransportPriority::inproc;
  }

  [[nodiscard]] std::optional<Address> own_address(const ListenPlan& /*plan*/) const override {
    return Address::parse(scheme_ + "://" + host_ + "-" + std::to_string(incarnation_));
  }

  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override {
    check(address, AddressUse::listen);
    auto listening = std::make_shared<InprocListening>();
    listening->loop = loop_;
    listening->host = host_;
    listening->start = start_;
    listening->name = address.name();
    listening->handler = std::move(handler);
    if (!switchboard_->listen(listening)) {
      throw JoinFailed("cannot listen on " + address.to_string() +
                       ": the address is taken in this network. Choose another name");
    }
    return std::make_unique<InprocListener>(switchboard_, std::move(listening), address);
  }

  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override {
    check(address, AddressUse::connect);
    auto connecting = std::make_shared<InprocConnecting>();
    connecting->loop = loop_;
    connecting->host = host_;
    connecting->start = start_;
    connecting->name = address.name();
    connecting->transport = this;
    connecting->handler = std::move(handler);
    switchboard_->connect(connecting, deadline);
  }

 private:
  const std::shared_ptr<InprocSwitchboard> switchboard_;
  const std::weak_ptr<Loop> loop_;
  const std::string host_;
  const std::uint64_t incarnation_;
  const std::string scheme_;
  const std::uint64_t start_;
};

}  // namespace

std::shared_ptr<InprocNetwork> InprocNetwork::make(std::uint64_t seed) {
  return std::shared_ptr<InprocNetwork>(new InprocNetwork(seed));
}

InprocNetwork::InprocNetwork(std::uint64_t seed)
    : switchboard_(std::make_shared<InprocSwitchboard>(seed)) {}
InprocNetwork::~InprocNetwork() = default;

std::shared_ptr<Transport> InprocNetwork::transport(const std::shared_ptr<Loop>& loop,
                                                    std::string host) {
  return transport({.loop = loop, .node = std::move(host)});
}

std::shared_ptr<Transport> InprocNetwork::transport(const TransportContext& node) {
  return std::make_shared<InprocTransport>(switchboard_, node, kShared);
}

TransportFactory inproc_transport(std::shared_ptr<InprocNetwork> network) {
  if (!network) {
    throw InvalidArgument(
        "inproc_transport() needs a network; make one with InprocNetwork::make()");
  }
  return [network = std::move(network)](const TransportContext& node) {
    return network->transport(node);
  };
}

std::shared_ptr<Transport> detail::self_transport(const TransportContext& context) {
  constexpr std::uint64_t kNoSeed = 0;  // links without delays draw nothing
  return std::make_shared<InprocTransport>(std::make_shared<InprocSwitchboard>(kNoSeed), context,
                                           kOwn);
}

void InprocNetwork::set_link(const LinkOptions& options) { switchboard_->set_link(options); }
void InprocNetwork::set_link(std::string_view a, std::string_view b, const LinkOptions& options) {
  switchboard_->set_link(a, b, options);
}
void InprocNetwork::partition(std::string_view a, std::string_view b) {
  switchboard_->partition(a, b);
}
void InprocNetwork::partition_one_way(std::string_view from, std::string_view to) {
  switchboard_->partition_one_way(from, to);
}
void InprocNetwork::heal(std::string_view a, std::string_view b) { switchboard_->heal(a, b); }
void InprocNetwork::isolate(std::string_view host) { switchboard_->set_isolated(host, true); }
void InprocNetwork::rejoin(std::string_view host) { switchboard_->set_isolated(host, false); }
void InprocNetwork::kill(std::string_view host) { switchboard_->kill(host); }
void InprocNetwork::cut(std::string_view a, std::string_view b) { switchboard_->cut(a, b); }
void InprocNetwork::power_off(std::string_view host) { switchboard_->power_off(host); }
void InprocNetwork::set_trace(std::function<void(std::string_view event)> sink) {
  switchboard_->trace().set_sink(std::move(sink));
}
std::size_t InprocNetwork::connections() const { return switchboard_->connections(); }

}  // namespace batchrpc
