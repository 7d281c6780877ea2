#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"
#include "node/real_nodes.hpp"

// Processes that end in the middle of their calls, and are started again.

namespace batchrpc {
namespace restart_test {

using namespace std::chrono_literals;
using test::Child;
using test::outcome;

constexpr auto kPatience = 30s;

int add(const Node& node, const std::string& peer) {
  return node.call<int(int, int)>(peer, "add", 1, 2).get();
}

TEST_CASE("promise 8: a peer that calls exit() or abort() with calls under way ends them all") {
  NodeOptions options = test::real_root("root", 1);
  options.logging.level = LogLevel::off;
  options.liveness.dead_after = 60s;  // nothing here waits for that
  const Node root(options);
  root.expose("add", [](int a, int b) { return a + b; });
  for (const std::string way : {"exit", "abort", "exit", "abort"}) {
    Child peer({"serving_node", "name=peer", "rank=-1", "join=" + root.address()});
    peer.line("called");
    std::vector<Future<int>> calls;
    for (int i = 0; i < 100; ++i) {
      calls.push_back(root.call<int()>("peer", "never"));
      calls.push_back(root.call<int(int, int)>("peer", "add", i, 1));
    }
    root.peer("peer").notify<void()>(way);
    for (auto& call : calls) {
      const auto result = outcome(std::move(call));
      CHECK((result || result.code() == ErrorCode::peer_lost ||
             result.code() == ErrorCode::not_sent));
    }
    CHECK(peer.wait() == (way == "exit" ? 3 : -SIGABRT));
  }
}

TEST_CASE("promise 9: a root process that is killed and started again is found by its members") {
  auto root = std::make_unique<Child>(
      std::vector<std::string>{"serving_node", "name=root", "join=tcp://127.0.0.1:0"});
  const std::string join = "join=" + root->line("address ");
  NodeOptions options;
  options.name = "member";
  options.rank = -1;
  options.join = join.substr(5);
  options.logging.level = LogLevel::off;
  const Node member(options);
  member.expose("add", [](int a, int b) { return a + b; });
  Child other({"serving_node", "name=other", "rank=-1", join});
  other.line("called");
  const std::uint64_t before = member.wait_for_peer("root").get().incarnation;

  root->signal(SIGKILL);
  CHECK(root->wait() == -SIGKILL);
  other.line("is lost root");
  CHECK(add(member, "other") == 3);
  auto late = Node::start([&] {
    NodeOptions joining = options;
    joining.name = "late";
    return joining;
  }());

  root = std::make_unique<Child>(std::vector<std::string>{"serving_node", "name=root", join});
  root->line("has joined member");
  root->line("has joined other");
  REQUIRE(late.wait_for(kPatience));
  const Node joined = std::move(late).get();
  CHECK(add(joined, "root") == 3);
  const PeerInfo again = member.wait_for_peer("root", kPatience).get();
  CHECK(again.incarnation != before);
  CHECK(add(member, "root") == 3);
  other.line("has joined root");
  joined.wait_for_peer("other", kPatience).get();
  CHECK(add(joined, "other") == 3);
}

TEST_CASE("promise 9: a process that is stopped gives its name to its successor") {
  NodeOptions options = test::real_root("root", 1);
  options.logging.level = LogLevel::off;
  options.liveness.dead_after = 60s;  // nothing here waits for that
  options.liveness.ping_after = 100ms;
  const Node root(options);
  root.expose("add", [](int a, int b) { return a + b; });
  const auto start = [&] {
    Child peer({"serving_node", "name=peer", "rank=-1", "join=" + root.address()});
    peer.line("called");
    return peer;
  };
  Child first = start();
  first.signal(SIGSTOP);
  const Child second = start();
  const std::uint64_t incarnation = root.wait_for_peer("peer").get().incarnation;
  CHECK(add(root, "peer") == 3);
  first.signal(SIGCONT);
  first.line("is lost root");  // which refuses it now
  CHECK(add(root, "peer") == 3);
  CHECK(root.wait_for_peer("peer").get().incarnation == incarnation);
}

}  // namespace restart_test
}  // namespace batchrpc
