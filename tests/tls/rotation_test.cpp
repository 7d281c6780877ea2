// Certificates and deny lists that change while nodes use them. The nodes look at the files every
// second, so these tests take as long.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/transport/tcp_transport.hpp"
#include "becomes_true.hpp"
#include "node/real_nodes.hpp"
#include "signal.hpp"
#include "tls/certificate_files.hpp"

namespace batchrpc::test {
namespace rotation_test {

using namespace std::chrono_literals;

int twice(int number) { return 2 * number; }

NodeOptions options_of(const SecurityOptions& security, const std::string& name,
                       const Node* root = nullptr) {
  NodeOptions options = root != nullptr ? real_joining(*root, name, 1) : real_root(name, 1);
  options.transports = {tcp_transport()};
  options.job = "job";
  options.security = security;
  return options;
}

bool is_connected(const Node& node, const std::string& peer) {
  for (const PeerInfo& each : node.peers())
    if (each.name == peer) return each.state == PeerState::connected;
  return false;
}

std::chrono::seconds left_of(const Node& node) {
  return node.metrics().certificate_time_left.value_or(0s);
}

TEST_CASE("certificates that are renewed are loaded, and no call is lost", "[threads]") {
  const CertificateFiles files;
  Node root(options_of(files.options("a"), "a"));
  root.expose<&twice>();
  const Node other(options_of(files.options("b"), "b", &root));
  CHECK(left_of(root) > 50min);
  CHECK(left_of(root) <= 1h);
  (void)files.options("a", -1h, 5h);
  (void)files.options("b", -1h, 5h);
  int calls = 0;
  CHECK(becomes_true(
      [&] {
        CHECK(other.call<&twice>("a", calls).get() == 2 * calls);
        ++calls;
        return left_of(root) > 4h && left_of(other) > 4h;
      },
      kPatience));
}

TEST_CASE("files that cannot be used do not replace those that are loaded", "[threads]") {
  const CertificateFiles files;
  const SecurityOptions options = files.options("a");
  const Node root(options_of(options, "a"));
  const Node other(options_of(files.options("b"), "b", &root));
  files.write("a.pem", "no certificate");
  std::this_thread::sleep_for(1200ms);
  const Node late(options_of(files.options("c"), "c", &root));
  CHECK(left_of(root) > 50min);
}

TEST_CASE("connections of a revoked certificate end, and it cannot connect again", "[threads]") {
  const CertificateFiles files;
  SecurityOptions security = files.options("a");
  security.revocations = files.revocations({});
  Node root(options_of(security, "a"));
  root.expose<&twice>();
  const SecurityOptions bad = files.options("bad");
  const Node other(options_of(bad, "bad", &root));
  const Node good(options_of(files.options("good"), "good", &root));
  CHECK(other.call<&twice>("a", 1).get() == 2);
  (void)files.revocations({bad.certificate});
  CHECK(becomes_true([&] { return !is_connected(root, "bad"); }, kPatience));
  try {
    (void)other.call<&twice>("a", 1).get();
    FAIL("it was answered");
  } catch (const Error& error) {
    // PeerLost, if `other` had not yet seen that its connection has ended.
    CHECK((error.code() == ErrorCode::not_sent || error.code() == ErrorCode::peer_lost));
    CHECK_THAT(error.what(), Catch::Contains("this node's certificate was revoked"));
  }
  CHECK(good.call<&twice>("a", 2).get() == 4);
}

TEST_CASE("nodes on the deny list lose their sessions, and do not come back", "[threads]") {
  const CertificateFiles files;
  SecurityOptions security;
  security.token_file = files.write("token", tls::make_token());
  SecurityOptions guarded = security;
  guarded.denied = files.write("denied", "# nobody yet\n");
  Node root(options_of(guarded, "a"));
  root.expose<&twice>();
  const Node other(options_of(security, "bad1", &root));
  const Node good(options_of(security, "good", &root));
  CHECK(other.call<&twice>("a", 1).get() == 2);
  files.write("denied", "bad*  # all of them\n");
  CHECK(becomes_true([&] { return !is_connected(root, "bad1"); }, kPatience));
  CHECK_THROWS_AS(other.peer("a").with({.timeout = 1s}).call<&twice>(1).get(), Error);
  try {
    const Node another(options_of(security, "bad2", &root));
    FAIL("it has joined");
  } catch (const JoinFailed& error) {
    CHECK_THAT(error.what(), Catch::Contains("may not connect (NodeOptions::security.denied)"));
  }
  CHECK(good.call<&twice>("a", 2).get() == 4);
}

TEST_CASE("a deny list that cannot be read is refused", "[threads]") {
  SecurityOptions security;
  security.denied = "/nowhere/denied";
  CHECK_THROWS_AS(Node(options_of(security, "a")), InvalidArgument);
}

}  // namespace rotation_test
}  // namespace batchrpc::test
