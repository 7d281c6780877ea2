#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "child.hpp"
#include "kept_thing.hpp"
#include "node/real_nodes.hpp"

// Users and owners of objects that are killed at any moment.

namespace batchrpc {
namespace rref_kill_test {

using namespace std::chrono_literals;
using test::Child;

TEST_CASE("of processes that are killed 200 times, users and owners, no reference stays") {
  constexpr int kChildren = 3;
  constexpr int kKills = 200;
  NodeOptions options = test::real_root("root");
  options.logging.level = LogLevel::off;
  options.liveness.dead_after = 1s;
  options.liveness.ping_after = 100ms;
  const Node root(options);
  kept::Thing::alive = 0;
  const auto keeper = std::make_shared<kept::Keeper>(root, 1);
  keeper->expose();
  std::mt19937_64 random(2);
  std::vector<std::optional<Child>> children(kChildren);
  std::uint64_t seed = 10;
  const auto start = [&](std::size_t index) {
    children.at(index).emplace(Child(
        {"keeping_node", "child" + std::to_string(index), root.address(), std::to_string(++seed)}));
  };
  for (std::size_t i = 0; i < kChildren; ++i) {
    start(i);
    children.at(i)->line("joined");
  }
  for (int kill = 0; kill < kKills; ++kill) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 40'000);
    while (std::chrono::steady_clock::now() < until) {
      keeper->act();
      std::this_thread::sleep_for(200us);
    }
    const std::size_t victim = random() % kChildren;
    children.at(victim)->signal(SIGKILL);
    CHECK(children.at(victim)->wait() == -SIGKILL);
    start(victim);
  }
  CHECK(keeper->wrong().empty());
  CHECK(keeper->answered > 0);
  std::cout << "  " << keeper->answered << " calls answered\n";
  for (auto& child : children) {
    child->signal(SIGKILL);
    CHECK(child->wait() == -SIGKILL);
  }
  keeper->drop();
  const auto at_most = std::chrono::steady_clock::now() + 30s;
  const auto is_clean = [&] {
    const RRefReport report = rref_report(root);
    return report.owned.empty() && report.in_flight == 0 && kept::Thing::alive == 0;
  };
  while (!is_clean() && std::chrono::steady_clock::now() < at_most)
    std::this_thread::sleep_for(50ms);
  const RRefReport report = rref_report(root);
  CHECK(report.owned.empty());
  CHECK(report.in_flight == 0);
  CHECK(kept::Thing::alive == 0);
}

}  // namespace rref_kill_test
}  // namespace batchrpc
