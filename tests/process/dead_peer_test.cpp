#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"
#include "node/real_nodes.hpp"
#include "two_namespaces.hpp"

// Promise 6, with processes: a dead peer is found. Exact times, and that nobody is taken for dead:
// tests/node/dead_peer_test.cpp.

namespace batchrpc {
namespace dead_peer_test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::Child;
using test::may_have_run;
using test::outcome;
using test::TwoNamespaces;

/// A node of ours and a process, with one connection between them.
struct Watched {
  Watched(bool we_connect, test::Sockets transport, std::chrono::milliseconds dead_after) {
    const bool is_unix = transport == test::Sockets::unix_only;
    const Child::Words common{"serving_node", "name=peer",
                              std::string("transport=") + (is_unix ? "unix" : "tcp"),
                              "dead_after=" + std::to_string(dead_after.count())};
    const auto start = [&](const Child::Words& more) {
      Child::Words all = common;
      all.insert(all.end(), more.begin(), more.end());
      peer.emplace(all);
      peer->line("called ");
    };
    NodeOptions options = test::real_root("watcher", 1);
    options.transports = test::transports_of(transport);
    options.liveness.dead_after = dead_after;
    options.liveness.ping_after = dead_after / 5;
    options.logging.level = LogLevel::off;
    const std::string name = is_unix ? "unix-abstract:batchrpc-dead-" + std::to_string(::getpid()) +
                                           (we_connect ? "c" : "a")
                                     : "tcp://127.0.0.1:0";
    options.join = name;
    if (we_connect) {
      start({"rank=0", "join=" + name});
      options.rank = -1;
      options.join = peer->line("address ");
    }
    node.emplace(options);
    node->on_membership([lost = lost](const MembershipChange& change) {
      if (!change.joined) *lost = true;
    });
    if (!we_connect) {
      node->expose("add", [](int a, int b) { return a + b; });
      start({"rank=-1", "join=" + node->address()});
    }
    root_address = we_connect ? options.join : node->address();
    CHECK(add().get() == 3);
  }

  [[nodiscard]] Future<int> add() const { return node->call<int(int, int)>("peer", "add", 1, 2); }

  std::string root_address{};
  std::optional<Child> peer{};
  std::optional<Node> node{};
  std::shared_ptr<std::atomic<bool>> lost = std::make_shared<std::atomic<bool>>(false);
};

std::string ways(bool we_connect, test::Sockets transport) {
  return std::string(transport == test::Sockets::tcp ? "TCP" : "a Unix socket") +
         (we_connect ? ", which it had accepted" : ", which it had made");
}

long long ms_since(Clock::time_point begin) { return (Clock::now() - begin) / 1ms; }

TEST_CASE("promise 6: a process that is killed is known to be dead at once") {
  const bool we_connect = GENERATE(false, true);
  const auto transport = GENERATE(test::Sockets::tcp, test::Sockets::unix_only);
  Watched watched(we_connect, transport, 5s);
  auto under_way = watched.node->call<int()>("peer", "never");
  CHECK(watched.add().get() == 3);  // that one has arrived before
  watched.peer->signal(SIGKILL);
  const auto killed = Clock::now();
  const auto lost = outcome(std::move(under_way));
  WARN(ways(we_connect, transport) << ": known after " << ms_since(killed) << " ms");
  CHECK(Clock::now() - killed < 4s);  // not by its silence
  CHECK(lost.code() == ErrorCode::peer_lost);
  CHECK(may_have_run(lost.error()));
}

TEST_CASE(
    "promise 6: a process that is stopped is dead after the dead-peer time, until it goes on") {
  const bool we_connect = GENERATE(false, true);
  const auto transport = GENERATE(test::Sockets::tcp, test::Sockets::unix_only);
  Watched watched(we_connect, transport, 1s);
  watched.peer->signal(SIGSTOP);
  const auto stopped = Clock::now();
  const auto lost = outcome(watched.add());
  WARN(ways(we_connect, transport) << ": known after " << ms_since(stopped) << " ms of 1000");
  CHECK(lost.code() == ErrorCode::peer_lost);
  CHECK(may_have_run(lost.error()));
  CHECK(Clock::now() - stopped >= 800ms);
  CHECK(Clock::now() - stopped < 5s);
  watched.peer->signal(SIGCONT);
  Result<int> sum = outcome(watched.add());
  for (int tries = 0; !sum && tries < 50; ++tries)
    sum = outcome(watched.add());
  CHECK(sum);
}

TEST_CASE("promise 6: a process that is stopped for half of the time loses nothing") {
  const bool we_connect = GENERATE(false, true);
  const Watched watched(we_connect, test::Sockets::tcp, 5s);
  watched.peer->signal(SIGSTOP);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(watched.add());
    std::this_thread::sleep_for(25ms);
  }
  watched.peer->signal(SIGCONT);
  for (Future<int>& call : calls)
    CHECK(std::move(call).get() == 3);
  CHECK_FALSE(*watched.lost);
}

TEST_CASE(
    "promise 6: a process whose handlers and main thread compute is not dead, nor are others") {
  const Watched watched(false, test::Sockets::tcp, 2s);
  std::vector<Future<void>> handlers;
  for (int i = 0; i < 2; ++i)  // on all of its threads
    handlers.push_back(watched.node->call<void(int)>("peer", "compute", 5000));
  const auto end = Clock::now() + 5s;
  while (Clock::now() < end) {
  }
  for (Future<void>& handler : handlers)
    std::move(handler).get();
  CHECK(watched.add().get() == 3);
  CHECK_FALSE(*watched.lost);
  CHECK(watched.peer->output().find("is lost") == std::string::npos);
}

// --- two machines

/// An agent, and an observer that calls it every 10 ms.
struct TwoMachines {
  TwoMachines(const TwoNamespaces& spaces, const std::string& dead_after)
      : agent(TwoNamespaces::start_in(
            spaces.agent, {"name=agent", "rank=0", "world=2", "join=tcp://10.213.0.1:29500",
                           "dead_after=" + dead_after})),
        observer(TwoNamespaces::start_in(
            spaces.observers, {"name=observer", "rank=1", "world=2", "join=tcp://10.213.0.1:29500",
                               "dead_after=" + dead_after, "calls=agent"})) {
    agent.line("called ");
    observer.line("calling");
  }

  Child agent;
  Child observer;
};

/// How long after `time` the process noticed the loss, in ms.
double lost_after(Child& child, const std::string& name, Clock::time_point time) {
  const long long at = std::stoll(child.line("is lost " + name + " at "));
  const auto began = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
  return static_cast<double>(at - began.count()) / 1000;
}

TEST_CASE("promise 6: packets that get lost for less than 3 s cost no call") {
  const TwoNamespaces spaces;
  if (!spaces.made()) return;
  TwoMachines machines(spaces, "5000");
  REQUIRE(spaces.lose_packets());
  std::this_thread::sleep_for(2500ms);
  REQUIRE(spaces.carry_packets());
  machines.observer.close_input();
  const int answered = std::stoi(machines.observer.line("answered "));
  const int slowest = std::stoi(machines.observer.line("slowest "));
  WARN(answered << " calls, the slowest took " << slowest << " ms");
  CHECK(machines.observer.line("failed ") == "0");
  CHECK(answered > 1);
  CHECK(slowest > 2000);
  CHECK(machines.observer.output().find("is lost") == std::string::npos);
  machines.agent.close_input();
  CHECK(machines.agent.wait() == 0);
}

TEST_CASE("promise 6: a peer whose packets all get lost is dead for both sides after 5 to 6 s") {
  const TwoNamespaces spaces;
  if (!spaces.made()) return;
  TwoMachines machines(spaces, "5000");
  REQUIRE(spaces.lose_packets());
  const auto cut = Clock::now();
  const double agent_lost = lost_after(machines.observer, "agent", cut);
  const double observer_lost = lost_after(machines.agent, "observer", cut);
  WARN("known after " << agent_lost << " ms to who calls, " << observer_lost
                      << " ms to who is called");
  CHECK(std::min(agent_lost, observer_lost) > 3500);
  CHECK(std::max(agent_lost, observer_lost) < 9000);  // 6 s, and a loaded machine
}

TEST_CASE("promise 6: a machine that loses its power is dead after the dead-peer time") {
  const TwoNamespaces spaces;
  if (!spaces.made()) return;
  TwoMachines machines(spaces, "2000");
  // Nothing that the kernel sends of the dying process arrives.
  REQUIRE(spaces.lose_packets());
  const auto off = Clock::now();
  machines.agent.signal(SIGKILL);
  REQUIRE(spaces.cut());
  const double lost = lost_after(machines.observer, "agent", off);
  WARN("known after " << lost << " ms of 2000");
  CHECK(lost > 1000);
  CHECK(lost < 6000);
}

// --- ss -K

const std::string kSs = test::system_tool("ss");

/// Has the kernel end all TCP connections of a port.
void kill_sockets(int port) {
  const std::string number = std::to_string(port);
  Child child({kSs, "-K", "-t", "-n", "( sport = :" + number + " or dport = :" + number + " )"});
  child.wait();
}

/// Whether it does: it may have been built without, or the user may not.
bool sockets_can_be_killed() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  bool killed = ::bind(listener, any, size) == 0 && ::listen(listener, 1) == 0 &&
                ::getsockname(listener, any, &size) == 0 && ::connect(client, any, size) == 0;
  if (killed) {
    kill_sockets(ntohs(address.sin_port));
    std::array<char, 1> byte{};
    killed = ::recv(client, byte.data(), byte.size(), MSG_DONTWAIT) < 0 && errno != EAGAIN;
  }
  ::close(client);
  ::close(listener);
  return killed;
}

TEST_CASE("promise 6: sockets that are killed (ss -K) cost no call") {
  if (kSs.empty() || !sockets_can_be_killed()) {
    WARN("left out: `ss -K` takes root and a kernel with CONFIG_INET_DIAG_DESTROY");
    return;
  }
  const bool we_connect = GENERATE(false, true);
  const Watched watched(we_connect, test::Sockets::tcp, 5s);
  const std::string& address = watched.root_address;
  std::vector<Future<int>> calls;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i)
      calls.push_back(watched.add());
    kill_sockets(std::stoi(address.substr(address.rfind(':') + 1)));
    for (int i = 0; i < 100; ++i)
      calls.push_back(watched.add());
  }
  std::size_t failed = 0;
  for (Future<int>& call : calls)
    failed += outcome(std::move(call)) ? 0 : 1;
  CHECK(failed == 0);
  CHECK_FALSE(*watched.lost);
  const auto peers = watched.node->peers();
  REQUIRE(peers.size() == 1);
  WARN(peers.front().reconnects << " reconnects");
  CHECK(peers.front().reconnects > 0);
}

}  // namespace dead_peer_test
}  // namespace batchrpc
