#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "child.hpp"
#include "node/real_nodes.hpp"

// Peers that are killed, as real processes. How soon that is known: dead_peer_test.cpp.

namespace batchrpc {
namespace peer_death_test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::Child;
using test::may_have_run;
using test::outcome;

NodeOptions root_options() {
  NodeOptions options = test::real_root("root", 1);
  options.logging.level = LogLevel::off;
  return options;
}

Child start_peer(const Node& root, const std::string& more = "timeout=20000") {
  if (exposed_functions(root).empty()) root.expose("add", [](int a, int b) { return a + b; });
  Child child({"serving_node", "name=peer", "rank=-1", "join=" + root.address(), more});
  child.line("called");
  return child;
}

Future<int> add(const Node& node) { return node.call<int(int, int)>("peer", "add", 1, 2); }

TEST_CASE("calls to a process that is killed end at once, and its successor is called again") {
  NodeOptions options = root_options();
  options.liveness.dead_after = 60s;  // nothing here waits for that
  options.transports = test::transports_of(GENERATE(test::Sockets::all, test::Sockets::tcp));
  const Node root(options);
  for (int round = 0; round < 3; ++round) {
    Child peer = start_peer(root);
    CHECK(add(root).get() == 3);
    Future<int> under_way = root.call<int()>("peer", "never");
    CHECK(add(root).get() == 3);  // that one has arrived before
    peer.signal(SIGKILL);
    const auto died = Clock::now();
    const auto lost = outcome(std::move(under_way));
    CHECK(lost.code() == ErrorCode::peer_lost);
    CHECK(may_have_run(lost.error()));
    CHECK(Clock::now() - died < 10s);
    CHECK(peer.wait() == -SIGKILL);
    const auto later = outcome(add(root));
    CHECK(later.code() == ErrorCode::not_sent);
    CHECK_FALSE(may_have_run(later.error()));
  }
  const Child peer = start_peer(root);
  CHECK(add(root).get() == 3);
}

volatile std::sig_atomic_t broken_pipes = 0;

/// Counts SIGPIPE instead of dying of it. Asio has the process ignore the signal as soon as there
/// is a context, so this comes after the node.
class BrokenPipes {
 public:
  BrokenPipes() {
    broken_pipes = 0;
    struct sigaction count {};
    count.sa_handler = [](int) { broken_pipes = broken_pipes + 1; };
    ::sigaction(SIGPIPE, &count, &before_);
  }
  ~BrokenPipes() { ::sigaction(SIGPIPE, &before_, nullptr); }
  BrokenPipes(const BrokenPipes&) = delete;
  BrokenPipes& operator=(const BrokenPipes&) = delete;

  [[nodiscard]] int count() const { return broken_pipes; }

 private:
  struct sigaction before_ {};
};

TEST_CASE("a peer that is killed while much is sent to it ends the call, without SIGPIPE") {
  NodeOptions options = root_options();
  options.transports = test::transports_of(GENERATE(test::Sockets::all, test::Sockets::tcp));
  const Node root(options);
  const BrokenPipes signals;
  for (int round = 0; round < 3; ++round) {
    const Child peer = start_peer(root);
    auto size =
        root.call<std::size_t(Bytes)>("peer", "size", Bytes::allocate(std::size_t{256} << 20));
    CHECK_FALSE(size.wait_for(5ms));
    peer.signal(SIGKILL);
    CHECK_FALSE(outcome(std::move(size)));
    std::vector<Future<int>> later;
    for (int i = 0; i < 10; ++i)
      later.push_back(add(root));
    for (Future<int>& call : later)
      CHECK_FALSE(outcome(std::move(call)));
  }
  CHECK(signals.count() == 0);
}

TEST_CASE("who writes to a killed peer before anybody has noticed gets no SIGPIPE") {
  // An embedded node, whose context runs only now and then: nobody reads that the peer is gone.
  asio::io_context context;
  const auto work = asio::make_work_guard(context);
  const auto while_it_runs = [&context](const auto& action) {
    context.restart();
    std::thread runner([&context] { context.run(); });
    action();
    context.stop();
    runner.join();
  };
  NodeOptions options = root_options();
  options.transports = test::transports_of(GENERATE(test::Sockets::all, test::Sockets::tcp));
  options.io_context = &context;
  std::optional<Node> root;
  while_it_runs([&] { root.emplace(options); });
  const BrokenPipes signals;
  std::optional<Child> peer;
  while_it_runs([&] {
    peer.emplace(start_peer(*root));
    CHECK(add(*root).get() == 3);
  });
  peer->signal(SIGKILL);
  CHECK(peer->wait() == -SIGKILL);
  for (int i = 0; i < 10; ++i) {
    (void)add(*root);                  // the first, at least, is written by this thread
    std::this_thread::sleep_for(1ms);  // TCP hears of it after the first
  }
  while_it_runs([&] {
    CHECK_FALSE(outcome(add(*root)));
    root.reset();
  });
  CHECK(signals.count() == 0);
}

}  // namespace peer_death_test
}  // namespace batchrpc
