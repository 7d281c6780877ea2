#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace membership_promise {
inline int add(int a, int b) { return a + b; }
}  // namespace membership_promise

namespace batchrpc::test {

struct Event {
  bool joined = false;
  std::uint64_t incarnation = 0;
  bool operator==(const Event&) const = default;
};
using Events = std::map<std::string, std::vector<Event>>;  // by peer

/// A node, and what it is told of the others.
struct Observer {
  explicit Observer(Node made) : node(std::move(made)) {
    node.expose<&membership_promise::add>();
    node.on_membership([events = events](const MembershipChange& change) {
      (*events)[change.peer.name].push_back({change.joined, change.peer.incarnation});
    });
  }
  std::shared_ptr<Events> events = std::make_shared<Events>();
  Node node;
};

/// A group whose nodes are processes that can be killed.
class Processes {
 public:
  explicit Processes(std::uint64_t seed) : world(seed), random(seed) {
    world.network->set_link(
        {.latency = std::chrono::milliseconds(1), .jitter = std::chrono::milliseconds(5)});
  }

  Observer& start(NodeOptions options) {
    options.shutdown_timeout = Duration::zero();
    const std::string name = options.name;
    auto& observer = observers[name];
    observer = std::make_unique<Observer>(Node(std::move(options)));
    return *observer;
  }
  Observer& start_root() { return start(world.options("root")); }
  Observer& start_member(const std::string& name) { return start(world.joining(name)); }
  Observer& at(const std::string& name) { return *observers.at(name); }
  [[nodiscard]] bool has(const std::string& name) const { return observers.contains(name); }

  /// As by SIGKILL.
  void kill(const std::string& name) {
    world.network->kill(name);
    observers.erase(name);
  }
  /// In good order.
  void end(const std::string& name) {
    observers.at(name)->node.shutdown(std::chrono::milliseconds(100));
    observers.erase(name);
  }

  Duration random_time(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(random));
  }
  bool one_in(unsigned n) { return random() % n == 0; }

  VirtualWorld world;
  std::mt19937_64 random;
  std::map<std::string, std::unique_ptr<Observer>> observers;
};

/// Whether joins and losses take turns, each loss of the incarnation that had joined.
inline bool alternate(const std::vector<Event>& events) {
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (events[i].joined == events[i - 1].joined) return false;
    if (!events[i].joined && events[i].incarnation != events[i - 1].incarnation) return false;
  }
  return true;
}

inline bool is_part_of(const std::vector<Event>& part, const std::vector<Event>& whole) {
  return part.empty() ||
         std::search(whole.begin(), whole.end(), part.begin(), part.end()) != whole.end();
}

inline std::string text(const std::vector<Event>& events) {
  std::string all;
  for (const Event& event : events)
    all += (event.joined ? " +" : " -") + std::to_string(event.incarnation % 1000);
  return all;
}

}  // namespace batchrpc::test
