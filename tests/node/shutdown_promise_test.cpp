// Nodes that start and end with calls under way: promise 8 of docs/reliability.md.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "long_tests.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"

namespace shutdown_promise {
int add(int a, int b) { return a + b; }
}  // namespace shutdown_promise

namespace batchrpc {
namespace shutdown_promise_test {

using namespace std::chrono_literals;
using shutdown_promise::add;
using test::VirtualWorld;

/// Nodes in virtual time that start, end and call each other at random.
class Lives {
 public:
  explicit Lives(std::uint64_t seed) : world(seed), random(seed) {
    world.network->set_link({.latency = 1ms, .jitter = 2ms});
  }

  void step() {
    switch (random() % 8) {
      case 0:
        start(pick());
        break;
      case 1:
        end(pick());
        break;
      default:
        call(pick(), pick());
        break;
    }
    if (one_in(3)) world.run_for(up_to(20ms));
    take_started();
  }

  void end_all() {
    while (!members.empty())
      end(members.begin()->first);
    world.run_for(61s);  // to the end of those that wait for a root
    take_started();
    while (!members.empty())
      end(members.begin()->first);
    starting.clear();
  }

  void start(const std::string& name) {
    if (members.contains(name) || starting.contains(name)) return;
    NodeOptions options = name == "root" ? world.options(name) : world.joining(name);
    options.shutdown_timeout = up_to(20ms);
    ++starts;
    starting.emplace(name, Node::start(std::move(options)));
  }

  std::vector<int> completions;  // of each call
  int answered = 0;
  int starts = 0;
  int unnamed = 0;  // calls that were left, and not named
  VirtualWorld world;

 private:
  using Outstanding = std::map<std::pair<std::string, std::string>, int>;  // by peer and function

  struct Member {
    explicit Member(Node made) : node(std::move(made)) {}
    Batcher<int(int)> batcher{{.max_wait = 3ms}, [](std::vector<int> rows) { return rows; }};
    std::shared_ptr<Outstanding> outstanding = std::make_shared<Outstanding>();
    Node node;
  };

  bool one_in(unsigned n) { return random() % n == 0; }
  Duration up_to(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(random));
  }
  std::string pick() {
    static const std::vector<std::string> names{"root", "a", "b", "c", "d"};
    return names[random() % names.size()];
  }

  void take_started() {
    for (auto at = starting.begin(); at != starting.end();) {
      if (!at->second.ready()) {
        ++at;
        continue;
      }
      try {
        Node node = std::move(at->second).get();
        const std::string name = at->first;
        at = starting.erase(at);
        expose(*members.emplace(name, std::make_unique<Member>(std::move(node))).first->second);
      } catch (const JoinFailed&) {
        at = starting.erase(at);
      }
    }
  }

  void expose(Member& member) {
    member.node.expose<&add>();
    member.node.expose("later", [this](int number) {
      Promise<int> promise;
      auto future = promise.get_future();
      world.loop->schedule(
          world.loop->now() + up_to(30ms),
          [promise = std::move(promise), number]() mutable { promise.set_value(number); });
      return future;
    });
    member.node.expose("nested", [this, &member](int number) {
      return member.node.call<int(int)>(pick(), one_in(2) ? "later" : "batch", number)
          .then([](int result) { return result; });
    });
    member.node.expose("batch", member.batcher);
  }

  void call(const std::string& from, const std::string& to) {
    const auto at = members.find(from);
    if (at == members.end()) return;
    static const std::vector<std::string> functions{"later", "nested", "batch"};
    const std::string function = functions[random() % functions.size()];
    const std::size_t number = completions.size();
    completions.push_back(0);
    const auto outstanding = at->second->outstanding;
    ++(*outstanding)[{to, function}];
    at->second->node.call<int(int)>(to, function, static_cast<int>(number))
        .then([this, number, outstanding, to, function](const Result<int>& result) {
          ++completions[number];
          --(*outstanding)[{to, function}];
          if (result && *result == static_cast<int>(number)) ++answered;
        });
  }

  void end(const std::string& name) {
    const auto at = members.find(name);
    if (at == members.end()) return;
    Member& member = *at->second;
    if (one_in(2)) {
      const Outstanding before = *member.outstanding;
      const auto left = member.node.shutdown(Duration::zero());
      for (const auto& [call, count] : before) {
        const std::string beginning = call.first + ": " + call.second;
        const bool named = std::any_of(left.begin(), left.end(), [&](const std::string& text) {
          return text.compare(0, beginning.size(), beginning) == 0;
        });
        if (count > 0 && !named) ++unnamed;
      }
    } else if (one_in(2)) {
      member.node.shutdown(up_to(50ms));
    }
    members.erase(at);
  }

  std::mt19937_64 random;
  std::map<std::string, Future<Node>> starting;
  std::map<std::string, std::unique_ptr<Member>> members;
};

TEST_CASE("promise 8: nodes start and end at any time with calls under way: nothing is left") {
  int starts = 0;
  int answered = 0;
  std::size_t calls = 0;
  for (int seed = 1; seed <= test::times_on_one_thread(1000, 10'000); ++seed) {
    INFO("seed " << seed);
    Lives lives(static_cast<std::uint64_t>(seed));
    lives.start("root");
    for (int step = 0; step < 100; ++step)
      lives.step();
    lives.end_all();
    lives.world.run_for(10s);
    int incomplete = 0;
    int twice = 0;
    for (const int count : lives.completions) {
      if (count == 0) ++incomplete;
      if (count > 1) ++twice;
    }
    CHECK(incomplete == 0);
    CHECK(twice == 0);
    CHECK(lives.unnamed == 0);
    CHECK(lives.world.network->connections() == 0);
    CHECK(lives.world.loop->run_until_idle());
    starts += lives.starts;
    answered += lives.answered;
    calls += lives.completions.size();
  }
  INFO(starts << " starts, " << calls << " calls, " << answered << " answered");
  CHECK(starts > 3 * test::times_on_one_thread(1000, 10'000));
  CHECK(answered > static_cast<int>(calls / 4));
}

/// What a node of real sockets does for others.
struct Serving {
  explicit Serving(NodeOptions options) : node(std::move(options)) {
    node.expose<&add>();
    node.expose("nested", [this](const std::string& peer, int number) {
      return node.call<&add>(peer, number, 0).get();  // a worker waits
    });
    node.expose("asynchronous", [this](const std::string& peer, int number) {
      return node.call<&add>(peer, number, 0);
    });
    node.expose("batch", batcher);
  }
  Batcher<int(int)> batcher{{.max_size = 16, .max_wait = 1ms},
                            [](std::vector<int> rows) { return rows; }};
  Node node;
};

TEST_CASE("promise 8: over real sockets, nodes start and end with calls under way", "[threads]") {
  std::mt19937_64 random(8);
  std::atomic<int> completed{0};
  int begun = 0;
  for (int round = 0; round < test::times(100, 1000); ++round) {
    std::vector<std::unique_ptr<Serving>> nodes;
    const auto options = [&](NodeOptions how) {
      how.shutdown_timeout = std::chrono::milliseconds(random() % 3);
      how.logging.level = LogLevel::off;
      return how;
    };
    nodes.push_back(std::make_unique<Serving>(options(test::real_root("a", 2))));
    nodes.push_back(std::make_unique<Serving>(options(test::real_joining(nodes[0]->node, "b", 2))));
    nodes.push_back(std::make_unique<Serving>(options(test::real_joining(nodes[0]->node, "c", 2))));
    const std::vector<std::string> names{"a", "b", "c"};
    const auto count = [&completed](const Result<int>& /*result*/) { ++completed; };
    for (int i = 0; i < 50; ++i) {
      for (const auto& from : nodes) {
        const std::string& to = names[random() % names.size()];
        const std::string& third = names[random() % names.size()];
        from->node.call<&add>(to, i, 1).then(count);
        from->node.call<int(std::string, int)>(to, "nested", third, i).then(count);
        from->node.call<int(std::string, int)>(to, "asynchronous", third, i).then(count);
        from->node.call<int(int)>(to, "batch", i).then(count);
        begun += 4;
      }
      if (i == 25) {
        const auto early = random() % nodes.size();
        nodes[early]->node.shutdown(std::chrono::milliseconds(random() % 3));
      }
    }
    std::shuffle(nodes.begin(), nodes.end(), random);
    while (!nodes.empty())
      nodes.pop_back();
    CHECK(completed == begun);
  }
}

TEST_CASE("promise 8: what a node that ends could not finish is named, whoever waits for it") {
  VirtualWorld world;
  Node root = world.root();
  const Node peer = world.join("peer");
  std::vector<Promise<int>> never;
  const auto wait = [&never] { return never.emplace_back().get_future(); };
  root.expose("forever", wait);
  peer.expose("forever", wait);
  Batcher<int(int)> batcher({.max_size = 8, .max_wait = 1h},
                            [](std::vector<int> rows) { return rows; });
  root.expose("gathered", batcher);
  std::vector<Future<int>> futures;
  for (int i = 0; i < 2; ++i)
    futures.push_back(root.call<int()>("peer", "forever"));
  futures.push_back(peer.call<int()>("root", "forever"));
  futures.push_back(peer.call<int(int)>("root", "gathered", 1));
  world.run_for(10ms);
  CHECK(root.shutdown(1s) ==
        std::vector<std::string>{"peer: forever (2 calls)",
                                 "2 calls from peer, not yet answered: forever"});
  CHECK(world.log.contain("shut down while waiting: peer: forever (2 calls)"));
  world.run_for(10ms);
  for (auto& future : futures) {
    REQUIRE(future.ready());
    CHECK_FALSE(test::outcome(std::move(future)));
  }
}

}  // namespace shutdown_promise_test
}  // namespace batchrpc
