#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "long_tests.hpp"
#include "node/virtual_world.hpp"

// Promise 2: who has lost a peer tries at once, then ever more rarely, each in its own rhythm.

namespace batchrpc {
namespace reconnect_test {

using namespace std::chrono_literals;
using test::VirtualWorld;

/// When a node tried to connect to a peer: as its log says.
class Tries {
 public:
  Tries(const VirtualWorld& world, const std::string& whom) : world_(&world), whom_(whom) {}

  [[nodiscard]] LogSink sink() const {
    return [times = times_, world = world_, text = "connecting to " + whom_](
               LogLevel /*level*/, std::string_view line) {
      if (line.ends_with(text)) times->push_back(world->time());
    };
  }
  [[nodiscard]] const std::vector<Duration>& times() const { return *times_; }
  void forget() const { times_->clear(); }

 private:
  const VirtualWorld* world_;
  std::string whom_;
  std::shared_ptr<std::vector<Duration>> times_ = std::make_shared<std::vector<Duration>>();
};

/// The most that any `window` from `begin` on has of all these times.
std::size_t most_within(Duration window, Duration begin, std::vector<Duration> times) {
  std::sort(times.begin(), times.end());
  std::size_t most = 0;
  auto first = std::lower_bound(times.begin(), times.end(), begin);
  for (auto last = first; last != times.end(); ++last) {
    while (*last - *first >= window)
      ++first;
    most = std::max(most, static_cast<std::size_t>(last - first) + 1);
  }
  return most;
}

/// A node that calls a peer again and again.
class Caller {
 public:
  Caller(const VirtualWorld& world, std::string name, std::string callee)
      : world_(world), callee_(std::move(callee)), tries_(world, callee_), node_([&] {
          NodeOptions options = world.joining(std::move(name));
          options.logging.sink = tries_.sink();
          return options;
        }()) {}

  /// Calls every `period`, from `period` on.
  void begin(Duration period) {
    world_.loop->schedule(world_.loop->now() + period, [this, period, going = going_] {
      if (!*going) return;
      begin(period);
      call();
    });
  }
  /// Calls no more. Before the node ends, which still runs the loop.
  void end() const { *going_ = false; }

  struct Call {
    Duration made{};
    std::optional<Duration> ended{};
    std::optional<ErrorCode> error{};
  };
  [[nodiscard]] const std::vector<Call>& calls() const { return *calls_; }
  [[nodiscard]] const Tries& tries() const { return tries_; }

  /// When the first call that was made or answered after `time` was answered.
  [[nodiscard]] std::optional<Duration> answered_after(Duration time) const {
    std::optional<Duration> first;
    for (const Call& call : *calls_) {
      if (!call.ended || call.error || *call.ended < time) continue;
      first = std::min(first.value_or(*call.ended), *call.ended);
    }
    return first;
  }

 private:
  void call() {
    const std::size_t index = calls_->size();
    calls_->push_back({.made = world_.time()});
    node_.call<int(int, int)>(callee_, "add", 1, 2)
        .then([calls = calls_, index, &world = world_](const Result<int>& result) {
          Call& call = (*calls)[index];
          call.ended = world.time();
          if (!result) call.error = result.code();
        });
  }

  const VirtualWorld& world_;
  const std::string callee_;
  const Tries tries_;
  const Node node_;
  const std::shared_ptr<bool> going_ = std::make_shared<bool>(true);
  const std::shared_ptr<std::vector<Call>> calls_ = std::make_shared<std::vector<Call>>();
};

/// 200, fewer where that takes too long.
int many() { return test::times_on_one_thread(200, 200); }

/// Many clients, each calling a server every 100 ms, which goes away after a while.
struct Storm {
  explicit Storm(const std::string& callee, int count = many()) {
    world.network->set_link({.latency = 1ms});
    root.emplace(quiet(world.options("root")));
    server.emplace(quiet(world.joining("server")));
    (callee == "root" ? root : server)->expose("add", [](int a, int b) { return a + b; });
    for (int i = 0; i < count; ++i)
      clients.push_back(std::make_unique<Caller>(world, "client" + std::to_string(i), callee));
    for (const auto& client : clients) {
      client->begin(100ms);
      world.run_for(500us);
    }
    world.run_for(5s);
    for (const auto& client : clients) {
      REQUIRE(client->answered_after(world.time() - 1s));
      client->tries().forget();
    }
  }
  ~Storm() {
    for (const auto& client : clients)
      client->end();
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  static NodeOptions quiet(NodeOptions options) {
    options.logging.level = LogLevel::off;
    return options;
  }

  /// Whether the promise was kept in an outage from `gone` to `back`, 13 s ago.
  void check(Duration gone, Duration back) const {
    std::size_t most_tries = 0;
    std::vector<Duration> all_tries;
    Duration longest_absence{};
    Duration longest_call{};
    std::size_t open = 0;
    std::size_t absent = 0;
    std::size_t wrong = 0;
    for (const auto& client : clients) {
      const auto& tries = client->tries().times();
      most_tries = std::max(most_tries, tries.size());
      std::copy_if(tries.begin(), tries.end(), std::back_inserter(all_tries),
                   [back](Duration time) { return time < back; });
      const auto answered = client->answered_after(back);
      absent += answered ? 0 : 1;
      if (answered) longest_absence = std::max(longest_absence, *answered - back);
      for (const Caller::Call& call : client->calls()) {
        if (call.made < gone || call.made > back) continue;
        open += call.ended ? 0 : 1;
        if (!call.ended) continue;
        longest_call = std::max(longest_call, *call.ended - call.made);
        wrong += !call.error || *call.error == ErrorCode::not_sent ||
                         *call.error == ErrorCode::peer_lost || *call.error == ErrorCode::unknown
                     ? 0
                     : 1;
      }
    }
    const std::size_t peak = most_within(100ms, gone + 100ms, all_tries);
    INFO("at most " << most_tries << " tries of one client, " << peak
                    << " of all within 100 ms; all back after " << longest_absence / 1ms
                    << " ms; calls took up to " << longest_call / 1ms << " ms");
    CHECK(most_tries <= 20);
    CHECK(peak <= clients.size() * 3 / 4 + 5);
    CHECK(absent == 0);
    CHECK(longest_absence <= 13s);
    CHECK(open == 0);
    CHECK(longest_call <= 6s);
    CHECK(wrong == 0);
  }

  VirtualWorld world{};
  std::optional<Node> root{};
  std::optional<Node> server{};
  std::vector<std::unique_ptr<Caller>> clients{};
};

TEST_CASE(
    "promise 2: 200 clients of a server that cannot be reached for 60 s try at most 20 times, and "
    "are back within 13 s") {
  const Storm storm("root");  // to which the members' own connections go, too
  const Duration gone = storm.world.time();
  storm.world.network->isolate("root");
  storm.world.run_for(60s);
  const Duration back = storm.world.time();
  storm.world.network->rejoin("root");
  storm.world.run_for(13s);
  storm.check(gone, back);
}

TEST_CASE(
    "promise 2: 200 clients of a server that is killed and restarted after 60 s try at most 20 "
    "times, and are back within 13 s") {
  Storm storm("server");
  const Duration gone = storm.world.time();
  storm.world.kill("server");
  storm.world.run_for(60s);
  storm.server.reset();
  const Duration back = storm.world.time();
  storm.world.network->rejoin("server");
  storm.server.emplace(Storm::quiet(storm.world.joining("server")));
  storm.server->expose("add", [](int a, int b) { return a + b; });
  storm.world.run_for(13s);
  storm.check(gone, back);
}

TEST_CASE("promise 2: members whose root is killed try it when they call it, and not in a hurry") {
  const Storm storm("root", 20);
  storm.world.kill("root");
  storm.world.run_for(60s);
  std::size_t most = 0;
  for (const auto& client : storm.clients)
    most = std::max(most, client->tries().times().size());
  INFO("at most " << most << " tries");
  CHECK(most <= 20);
  for (const auto& client : storm.clients)
    client->end();
  storm.world.run_for(6s);  // the last calls
  for (const auto& client : storm.clients)
    client->tries().forget();
  storm.world.run_for(60s);
  for (const auto& client : storm.clients)
    CHECK(client->tries().times().empty());  // nobody calls
}

TEST_CASE("promise 2: 200 nodes whose root is not there yet try ever more rarely until it is") {
  const int nodes_joining = many();
  const VirtualWorld world;
  world.network->set_link({.latency = 1ms});
  std::vector<Tries> tries;
  std::vector<Future<Node>> joining;
  for (int i = 0; i < nodes_joining; ++i) {
    const Tries& of_one = tries.emplace_back(world, "inproc://world");
    NodeOptions options = world.joining("node" + std::to_string(i));
    options.logging.sink = of_one.sink();
    joining.push_back(Node::start(options));
  }
  world.run_for(30s);
  std::vector<Duration> all;
  std::size_t most = 0;
  for (const Tries& of_one : tries) {
    most = std::max(most, of_one.times().size());
    all.insert(all.end(), of_one.times().begin(), of_one.times().end());
  }
  const std::size_t peak = most_within(100ms, 5s, all);
  INFO("at most " << most << " tries in 30 s, " << peak << " of all within 100 ms");
  CHECK(most <= 50);
  CHECK(peak <= tries.size() / 4 + 5);
  const Node root = world.root();
  world.run_for(2s);
  std::vector<Node> nodes;
  for (Future<Node>& node : joining) {
    REQUIRE(node.ready());
    nodes.push_back(std::move(node).get());
  }
}

TEST_CASE(
    "promise 2: who accepted a session only asks whether the peer is there, and ever more rarely") {
  const VirtualWorld world;
  const Node root = world.root();
  const Node client = world.join("client");
  const Tries tries(world, "client");
  NodeOptions options = world.joining("server");
  options.logging.sink = tries.sink();
  const Node server(options);
  server.expose("add", [](int a, int b) { return a + b; });
  CHECK(client.call<int(int, int)>("server", "add", 1, 2).get() == 3);
  world.network->kill("server");  // which goes on, but nobody can connect to it any more
  world.run_for(60s);
  INFO(tries.times().size() << " tries");
  CHECK(tries.times().size() >= 3);
  CHECK(tries.times().size() <= 12);
}

TEST_CASE(
    "promise 2: the first try is at once, the second within a second, the others after pauses that "
    "grow to 10 s") {
  std::vector<double> first_pauses;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const VirtualWorld world;
    const Node root(Storm::quiet(world.options("root")));
    Node peer(world.joining("peer"));
    peer.expose("add", [](int a, int b) { return a + b; });
    const Tries tries(world, "peer");
    NodeOptions options = world.joining("caller");
    options.logging.sink = tries.sink();
    options.simulation.seed = 100 + seed;  // the other nodes have 1 and 2
    const Node caller(options);
    REQUIRE(caller.call<int(int, int)>("peer", "add", 1, 2).get() == 3);
    tries.forget();

    world.kill("peer");
    const Duration gone = world.time();
    const Duration most = seed <= 5 ? Duration(90s) : Duration(3s);
    constexpr Duration kStep = 10ms;
    while (world.time() < gone + most) {
      (void)caller.call<int(int, int)>("peer", "add", 1, 2);
      world.run_for(kStep);
    }
    const auto& times = tries.times();
    REQUIRE(times.size() >= 3);
    CHECK(times[0] - gone <= kStep);
    first_pauses.push_back(std::chrono::duration<double>(times[1] - times[0]).count());
    for (std::size_t i = 2; i < times.size(); ++i) {
      const double pause = std::chrono::duration<double>(times[i] - times[i - 1]).count();
      const double middle = 0.1 * std::pow(1.6, static_cast<double>(i - 2));
      INFO("pause " << i << ": " << pause << " s");
      CHECK(pause >= std::min(0.8 * middle, 10.0));
      CHECK(pause <= std::min(1.2 * middle, 10.0) + 0.011);
    }
  }
  std::sort(first_pauses.begin(), first_pauses.end());
  CHECK(first_pauses.front() < 0.1);
  CHECK(first_pauses.back() > 0.9);
  CHECK(first_pauses.back() <= 1.011);
  const double median = first_pauses[first_pauses.size() / 2];
  CHECK(median > 0.35);
  CHECK(median < 0.65);
}

TEST_CASE("promise 2: a connection that breaks again and again is made again, also an idle one") {
  constexpr LinkOptions kHoldsForAWhile{.break_after = 6000};  // of pings
  constexpr LinkOptions kBreaksAtOnce{.break_after = 100};
  const VirtualWorld world;
  const Node root = world.root();
  const Node peer = world.join("peer");
  const Node caller = world.join("caller");
  peer.expose("add", [](int a, int b) { return a + b; });
  const auto peer_is = [&](PeerState state) {
    for (const PeerInfo& info : caller.peers()) {
      if (info.name == "peer") return info.state == state;
    }
    return false;
  };
  world.network->set_link("caller", "peer", kHoldsForAWhile);
  CHECK(caller.call<int(int, int)>("peer", "add", 1, 2).get() == 3);
  for (int cut = 0; cut < 20; ++cut) {
    world.network->set_link("caller", "peer", kBreaksAtOnce);
    const Duration began = world.time();
    while (peer_is(PeerState::connected) && world.time() < began + 60s)
      world.run_for(10ms);
    REQUIRE(peer_is(PeerState::connecting));
    CHECK(world.time() > began + 6s);
    world.run_for(1s);
    world.network->set_link("caller", "peer", kHoldsForAWhile);
    world.run_for(3s);
    REQUIRE(peer_is(PeerState::connected));
  }
  CHECK(caller.call<int(int, int)>("peer", "add", 1, 2).get() == 3);
}

}  // namespace reconnect_test
}  // namespace batchrpc
