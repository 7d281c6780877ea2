#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/transport/inproc.hpp"
#include "batchrpc/transport/transport.hpp"
#include "node/real_nodes.hpp"

// A transport that the library knows nothing of, between two nodes: what docs/transports.md shows.

namespace batchrpc {
namespace added_transport_test {

using Catch::Contains;

/// Between nodes of one process, `pipe://name`: carried by an InprocNetwork of its own.
class PipeTransport final : public Transport {
 public:
  PipeTransport(const std::shared_ptr<InprocNetwork>& network, const TransportContext& node,
                int priority)
      : pipes_(network->transport(node)),
        own_(Address::parse("pipe://" + node.node + "-" + std::to_string(node.incarnation))),
        priority_(priority) {}

  std::vector<std::string> forms() const override { return {"pipe://name"}; }

  void check(const Address& address, AddressUse /*use*/) const override {
    if (address.name().find('/') == std::string::npos) return;
    address.refuse("a pipe's name has no slash, as in pipe://here");
  }

  std::optional<int> priority(const Address& /*address*/, bool same_host) const override {
    return same_host ? std::optional(priority_) : std::nullopt;
  }

  std::optional<Address> own_address(const ListenPlan& /*plan*/) const override { return own_; }

  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override {
    return std::make_unique<PipeListener>(address,
                                          pipes_->listen(inside(address), std::move(handler)));
  }

  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override {
    pipes_->connect(inside(address), deadline, std::move(handler));
  }

 private:
  struct PipeListener final : Listener {
    PipeListener(Address at, std::unique_ptr<Listener> its)
        : own(std::move(at)), pipe(std::move(its)) {}
    Address address() const override { return own; }
    const Address own;
    const std::unique_ptr<Listener> pipe;
  };

  static Address inside(const Address& address) {
    return Address::parse("inproc://" + address.name());
  }

  const std::shared_ptr<Transport> pipes_;
  const Address own_;
  const int priority_;
};

/// For NodeOptions::transports: pipes that are preferred to sockets.
TransportFactory pipe_transport(std::shared_ptr<InprocNetwork> network,
                                int priority = TransportPriority::unix_socket + 1) {
  return [network = std::move(network), priority](const TransportContext& node) {
    return std::make_shared<PipeTransport>(network, node, priority);
  };
}

NodeOptions with(NodeOptions options, TransportFactory more) {
  options.transports = built_in_transports();
  options.transports.push_back(std::move(more));
  return options;
}

/// The addresses of `peer` that `node` would try, the first one first.
std::vector<std::string> addresses_of(const Node& node, const std::string& peer) {
  for (const PeerInfo& known : node.peers()) {
    if (known.name == peer) return known.addresses;
  }
  return {};
}

int sum_of(const Node& caller, const std::string& callee) {
  return caller.call<int(int, int)>(callee, "add", 1, 2).get();
}

void expose_add(const Node& node) {
  node.expose("add", [](int a, int b) { return a + b; });
}

TEST_CASE("nodes of one host talk by a transport that the program has added, if it is preferred",
          "[threads]") {
  const auto network = InprocNetwork::make();
  const Node root(with(test::real_root("root"), pipe_transport(network)));
  const Node a(with(test::real_joining(root, "a"), pipe_transport(network)));
  expose_add(root);
  expose_add(a);
  CHECK(root.address().starts_with("tcp://"));  // where most others reach it
  const auto addresses = addresses_of(a, "root");
  REQUIRE(addresses.size() == 3);
  CHECK(addresses[0].starts_with("pipe://root-"));
  CHECK(addresses[1].starts_with("unix-abstract:"));
  CHECK(addresses[2].starts_with("tcp://"));
  CHECK(sum_of(a, "root") == 3);
  CHECK(sum_of(root, "a") == 3);
  CHECK(network->connections() == 1);

  const Node plain(
      test::real_joining(root, "plain"));  // has no pipes, and is reached none the less
  expose_add(plain);
  CHECK(addresses_of(plain, "root").size() == 2);
  CHECK(sum_of(plain, "root") == 3);
  CHECK(sum_of(root, "plain") == 3);
  CHECK(network->connections() == 1);
}

TEST_CASE("a transport of a low priority is the last to be tried", "[threads]") {
  const auto network = InprocNetwork::make();
  const auto pipes = pipe_transport(network, TransportPriority::tcp - 1);
  const Node root(with(test::real_root("root"), pipes));
  const Node a(with(test::real_joining(root, "a"), pipes));
  expose_add(root);
  CHECK(addresses_of(a, "root").back().starts_with("pipe://"));
  CHECK(sum_of(a, "root") == 3);
  CHECK(network->connections() == 0);
}

TEST_CASE("nodes may have no transport but one that the program has added", "[threads]") {
  NodeOptions options = test::real_root("root");
  options.transports = {pipe_transport(InprocNetwork::make())};
  options.join = "pipe://here";
  const Node root(options);
  CHECK(root.address() == "pipe://here");
  options.name = "a";
  options.rank = -1;
  const Node a(options);
  expose_add(a);
  CHECK(sum_of(root, "a") == 3);
  CHECK(sum_of(a, "a") == 3);
}

TEST_CASE("an address of a transport that the node does not have is refused, as is a wrong one",
          "[threads]") {
  NodeOptions options = test::real_root("root");
  options.join = "pipe://here";
  CHECK_THROWS_WITH(Node(options), Contains("NodeOptions::join: address 'pipe://here'") &&
                                       Contains("no transport for pipe addresses") &&
                                       Contains("tcp://host:port, unix:///path") &&
                                       Contains("NodeOptions::transports"));
  options.join = "udp://here";
  const auto pipes = pipe_transport(InprocNetwork::make());
  CHECK_THROWS_WITH(Node(with(options, pipes)), Contains("pipe://name"));
  options.join = "pipe://here/there";
  CHECK_THROWS_WITH(Node(with(options, pipes)), Contains("no slash, as in pipe://here"));
  options.join = "";
  options.transports = {pipes, pipes};
  CHECK_THROWS_WITH(Node(options), Contains("two transports for pipe addresses"));
}

}  // namespace added_transport_test
}  // namespace batchrpc
