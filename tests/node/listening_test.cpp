#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

// Where nodes listen, and through which sockets they talk.

namespace listening {
int add(int a, int b) { return a + b; }
}  // namespace listening

namespace batchrpc {
namespace listening_test {

/// The addresses of `peer` that `node` would try, the first one first.
std::vector<std::string> addresses_of(const Node& node, const std::string& peer) {
  for (const PeerInfo& known : node.peers()) {
    if (known.name == peer) return known.addresses;
  }
  return {};
}

/// How many connections to the Unix socket `address` ("unix-abstract:<name>") there are, as the
/// kernel tells.
int connections_to(const std::string& address) {
  const std::string path = "@" + address.substr(address.find(':') + 1);
  std::ifstream sockets("/proc/self/net/unix");
  int count = 0;
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state, inode, name;
    words >> number >> references >> protocol >> flags >> type >> state >> inode >> name;
    if (name == path && state == "03") ++count;
  }
  return count;
}

TEST_CASE("nodes of one host talk through a Unix socket by themselves", "[threads]") {
  const Node root(test::real_root("root"));
  const Node a(test::real_joining(root, "a"));
  const Node b(test::real_joining(root, "b"));
  b.expose<&listening::add>();
  a.wait_for_peer("b").get();
  const auto addresses = addresses_of(a, "b");
  REQUIRE(addresses.size() == 2);
  CHECK(addresses[0].starts_with("unix-abstract:"));
  CHECK(addresses[1].starts_with("tcp://127.0.0.1:"));
  CHECK(connections_to(addresses[0]) == 0);
  CHECK(a.call<&listening::add>("b", 1, 2).get() == 3);
  CHECK(connections_to(addresses[0]) == 1);
}

TEST_CASE("the root and who has joined it by TCP talk through a Unix socket", "[threads]") {
  const test::RealPair pair(1);
  REQUIRE(addresses_of(pair.b, "a").at(0).starts_with("unix-abstract:"));
  pair.a.expose<&listening::add>();
  pair.b.expose<&listening::add>();
  CHECK(pair.b.call<&listening::add>("a", 1, 2).get() == 3);
  CHECK(pair.a.call<&listening::add>("b", 1, 2).get() == 3);
  CHECK(connections_to(addresses_of(pair.a, "b").at(0)) == 0);
  CHECK(connections_to(addresses_of(pair.b, "a").at(0)) == 1);
}

TEST_CASE("a peer that has joined by one socket and talks through another is called at once",
          "[threads]") {
  const Node root(test::real_root("root"));
  for (int i = 0; i < 20; ++i) {
    const std::string name = "peer" + std::to_string(i);
    auto called = root.wait_for_peer(name).then(
        [&root](const PeerInfo& peer) { return root.call<&listening::add>(peer.name, 1, 2); });
    NodeOptions options = test::real_joining(root, name);
    options.expose_within = std::chrono::seconds(5);
    const Node node(options);
    node.expose<&listening::add>();
    CHECK(called.get() == 3);
  }
}

TEST_CASE("where TCP is chosen, there is no Unix socket", "[threads]") {
  const test::RealPair pair(1, test::Sockets::tcp);
  for (const auto& addresses : {addresses_of(pair.a, "b"), addresses_of(pair.b, "a")}) {
    REQUIRE(addresses.size() == 1);
    CHECK(addresses[0].starts_with("tcp://127.0.0.1:"));
  }
}

TEST_CASE("a node listens on loopback, if it is not told otherwise", "[threads]") {
  const test::RealPair pair(1);
  CHECK(pair.a.address().starts_with("tcp://127.0.0.1:"));
  CHECK(pair.b.address().starts_with("tcp://127.0.0.1:"));
}

TEST_CASE("a node listens where NodeOptions::listen says, and is called there", "[threads]") {
  NodeOptions options = test::real_root("root");
  options.transports = test::transports_of(test::Sockets::tcp);
  options.listen = "tcp://127.0.0.2:0";
  const Node root(options);
  CHECK(root.address().starts_with("tcp://127.0.0.2:"));

  options = test::real_joining(root, "a");
  options.transports = test::transports_of(test::Sockets::tcp);
  options.listen = "tcp://127.0.0.3:0";
  const Node a(options);
  CHECK(a.address().starts_with("tcp://127.0.0.3:"));
  a.expose<&listening::add>();

  options.name = "b";
  options.listen = "";
  const Node b(options);
  b.wait_for_peer("a").get();
  CHECK(addresses_of(b, "a") == std::vector{a.address()});
  CHECK(b.call<&listening::add>("a", 1, 2).get() == 3);
}

}  // namespace listening_test
}  // namespace batchrpc
