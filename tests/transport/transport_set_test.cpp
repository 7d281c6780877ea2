#include "transport/transport_set.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "fabrics.hpp"

namespace batchrpc::test {
namespace transport_set_test {

using Catch::Contains;

/// The transports of a node in real time.
struct Set {
  explicit Set(std::vector<TransportFactory> factories = built_in_transports())
      : transports(factories, {.loop = SocketLoop::start(), .node = "node", .incarnation = 7}) {}

  /// What is wrong with `text`.
  [[nodiscard]] std::string complaint(std::string_view text,
                                      AddressUse use = AddressUse::listen) const {
    try {
      return "taken as " + transports.parse(text, use).to_string();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  }

  TransportSet transports;
};

/// What a node advertises that has every transport of the library and one more.
const std::vector<std::string> kAdvertised{"tcp://10.0.0.1:1",    "rdma://far", "tcp://127.0.0.1:2",
                                           "unix-abstract:one",   "nonsense",   "tcp://10.0.0.1:0",
                                           "inproc://one-inside", "self://one", "unix:///two"};

TEST_CASE("a wrong address is refused by its transport, with how to write it", "[threads]") {
  const Set set({tcp_transport(), unix_transport(), inproc_transport(InprocNetwork::make())});
  CHECK_THAT(set.complaint("tcp://host"), Contains("the port is missing"));
  CHECK_THAT(set.complaint("unix://tmp/x"), Contains("three slashes"));
  CHECK_THAT(set.complaint("unix:/tmp/x"), Contains("three slashes"));
  CHECK_THAT(set.complaint("unix-abstract://x"), Contains("unix-abstract:name"));
  CHECK_THAT(set.complaint("unix:///" + std::string(107, 'x')), Contains("longer than 107"));
  CHECK_THAT(set.complaint(std::string_view("unix-abstract:a\0b", 17)), Contains("zero byte"));
  CHECK_THAT(set.complaint("inproc:x"), Contains("inproc://name"));
  CHECK_THAT(set.complaint("inproc://" + std::string(1025, 'x')), Contains("longer than 1024"));
  CHECK_THAT(set.complaint(std::string_view("inproc://a\0b", 12)), Contains("zero byte"));
  const std::vector<std::string> good{"tcp://127.0.0.1:0", "unix:///" + std::string(106, 'x'),
                                      "unix-abstract:x", "inproc://" + std::string(1024, 'x')};
  for (const std::string& text : good) {
    CHECK(set.complaint(text) == "taken as " + text);
  }
}

TEST_CASE("port 0 is one to listen at, not to connect to", "[threads]") {
  const Set set;
  CHECK(set.complaint("tcp://a:0", AddressUse::listen) == "taken as tcp://a:0");
  CHECK_THAT(set.complaint("tcp://a:0", AddressUse::connect), Contains("any free port"));
  CHECK(set.complaint("tcp://a:1", AddressUse::connect) == "taken as tcp://a:1");
}

TEST_CASE("an address of a scheme that no transport serves is refused with those that are",
          "[threads]") {
  const Set set;
  CHECK_THAT(set.complaint("udp://host:1"),
             Contains("'udp://host:1'") && Contains("no transport for udp addresses") &&
                 Contains("tcp://host:port, unix:///path, unix-abstract:name") &&
                 Contains("NodeOptions::transports"));
  CHECK_THAT(set.complaint("inproc://x"), Contains("inproc_transport(network)"));
  CHECK_THAT(Set(std::vector<TransportFactory>()).complaint("tcp://host:1"),
             Contains("it has none"));
}

TEST_CASE("each scheme is served by its transport", "[threads]") {
  const Set set({tcp_transport(), unix_transport(), inproc_transport(InprocNetwork::make())});
  Set other;
  CHECK_THROWS_AS(other.transports.listen(Address::parse("inproc://x"), {}), InvalidArgument);
  CHECK_THROWS_AS(other.transports.connect(Address::parse("rdma://x"), {}, {}), InvalidArgument);
  for (const char* scheme : {"tcp", "unix", "unix-abstract"}) {
    const auto listener = other.transports.listen(free_address(scheme), {});
    CHECK(listener->address().scheme() == scheme);
  }
  CHECK(set.transports.to_itself() == Address::parse("inproc://node-7"));
  CHECK(other.transports.to_itself() == Address::parse("self://node-7"));
}

TEST_CASE("a peer of this host is reached by the way of the highest priority first", "[threads]") {
  const Set set({tcp_transport(), unix_transport(), inproc_transport(InprocNetwork::make())});
  CHECK(set.transports.usable(kAdvertised, true) ==
        std::vector<std::string>{"inproc://one-inside", "unix-abstract:one", "unix:///two",
                                 "tcp://10.0.0.1:1", "tcp://127.0.0.1:2"});
}

TEST_CASE("a peer of another host is reached by what goes there", "[threads]") {
  const Set set;
  CHECK(set.transports.usable(kAdvertised, false) == std::vector<std::string>{"tcp://10.0.0.1:1"});
  CHECK(Set({unix_transport()}).transports.usable(kAdvertised, false).empty());
}

TEST_CASE("TCP listens where the root was reached from, or on loopback; Unix sockets always",
          "[threads]") {
  const Set set;
  const auto own = [&](const ListenPlan& plan) {
    std::vector<std::string> texts;
    for (const Address& address : set.transports.own_addresses(plan))
      texts.push_back(address.to_string());
    return texts;
  };
  using Texts = std::vector<std::string>;
  const std::string name = "unix-abstract:batchrpc-7";
  CHECK(own({}) == Texts{"tcp://127.0.0.1:0", name});
  CHECK(own({.reached_from = Address::parse("tcp://10.0.0.1:5")}) ==
        Texts{"tcp://10.0.0.1:0", name});
  CHECK(own({.reached_from = Address::parse("tcp://127.0.0.2:5")}) ==
        Texts{"tcp://127.0.0.1:0", name});
  CHECK(own({.reached_from = Address::parse("unix-abstract:x")}) ==
        Texts{"tcp://127.0.0.1:0", name});
  CHECK(own({.configured = Address::parse("tcp://10.0.0.1:5")}) == Texts{name});
  CHECK(own({.configured = Address::parse("unix:///x")}) == Texts{"tcp://127.0.0.1:0", name});
}

TEST_CASE("transports that no node can have are refused", "[threads]") {
  CHECK_THROWS_WITH(Set({tcp_transport(), tcp_transport()}),
                    Contains("two transports for tcp addresses"));
  CHECK_THROWS_WITH(Set({TransportFactory()}), Contains("returned no transport"));
  CHECK_THROWS_WITH(Set({[](const TransportContext&) { return std::shared_ptr<Transport>(); }}),
                    Contains("returned no transport"));
  CHECK_THROWS_WITH(inproc_transport(nullptr), Contains("InprocNetwork::make()"));
  for (const auto& factory : built_in_transports()) {
    CHECK_THROWS_WITH(
        TransportSet({factory}, {.loop = std::make_shared<VirtualLoop>(), .node = "node"}),
        Contains("NodeOptions::simulation.loop"));
  }
}

}  // namespace transport_set_test
}  // namespace batchrpc::test
