#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <latch>
#include <thread>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"

// The end of a node: it refuses, drains, names what is left, and never hangs.

namespace endings {
int add(int a, int b) { return a + b; }
/// Answers after 3 ms.
class Asked {
 public:
  explicit Asked(std::shared_ptr<batchrpc::Loop> loop) : loop_(std::move(loop)) {}
  batchrpc::Future<int> ask() {
    batchrpc::Promise<int> promise;
    auto answer = promise.get_future();
    loop_->schedule(loop_->now() + std::chrono::milliseconds(3),
                    [promise = std::move(promise)]() mutable { promise.set_value(1); });
    return answer;
  }

 private:
  std::shared_ptr<batchrpc::Loop> loop_;
};
}  // namespace endings

namespace batchrpc {
namespace shutdown_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;
using test::RealPair;

struct Pair : test::NodePair {
  std::vector<Promise<int>> open;

  Pair() {
    b.expose<&endings::add>();
    for (const Node* node : {&a, &b}) {
      node->expose("slow", [this] {
        open.emplace_back();
        return open.back().get_future();
      });
    }
  }
};

TEST_CASE("a shutdown waits for calls under way, and leaves nothing") {
  Pair pair;
  auto answer = pair.a.call<int()>("b", "slow");
  pair.world.run_for(1ms);
  pair.world.loop->schedule(pair.world.loop->now() + 300ms, [&] { pair.open[0].set_value(5); });
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.a.shutdown(10s).empty());
  CHECK(pair.world.loop->now() - start >= 300ms);
  CHECK(pair.world.loop->now() - start < 310ms);
  CHECK(answer.get() == 5);
}

TEST_CASE("a shutdown waits for the calls of others that are being answered") {
  Pair pair;
  auto answer = pair.a.call<int()>("b", "slow");
  pair.world.run_for(1ms);
  pair.world.loop->schedule(pair.world.loop->now() + 300ms, [&] { pair.open[0].set_value(5); });
  CHECK(pair.b.shutdown(10s).empty());
  CHECK(answer.get() == 5);
}

TEST_CASE("a shutdown waits for what peers have sent that are gone meanwhile") {
  RealPair pair(1);
  std::atomic<int> ran{0};
  pair.a.expose("slow", [&ran] {
    std::this_thread::sleep_for(1ms);
    ++ran;
  });
  for (int i = 0; i < 50; ++i)
    pair.b.notify<void()>("a", "slow");
  CHECK(pair.b.shutdown(30s).empty());
  pair.a.call<void()>("a", "slow").get();  // the notifications were read before
  CHECK(pair.a.shutdown(30s).empty());
  CHECK(ran == 51);
}

TEST_CASE("a shutdown ends though a peer goes on calling an object") {
  Pair pair;
  const RRef<endings::Asked> handle = pair.a.own(std::make_shared<endings::Asked>(pair.world.loop));
  pair.a.expose<&endings::Asked::ask>();
  pair.a.expose("handle", [&handle] { return handle; });
  const auto there = pair.b.call<RRef<endings::Asked>()>("a", "handle").get();
  ErrorCode refused{};
  std::function<void()> again = [&] {
    there.call<&endings::Asked::ask>().then([&](const Result<int>& result) {
      if (result) pair.world.loop->schedule(pair.world.loop->now() + 1ms, again);
      if (!result && refused == ErrorCode{}) refused = result.code();
    });
  };
  again();
  pair.world.run_for(2ms);
  again();  // so that one is always under way
  pair.world.run_for(1s);
  const TimePoint start = pair.world.loop->now();
  const auto left = pair.a.shutdown(10s);
  REQUIRE(left.size() == 1);  // no call, but
  CHECK_THAT(left.front(), Catch::StartsWith("b holds 1 RRef to endings::Asked, since "));
  CHECK(pair.world.loop->now() - start < 2s);
  pair.world.run_for(1s);
  CHECK(refused == ErrorCode::shut_down);
}

TEST_CASE("at the deadline the stragglers are named, and their futures end with ShutDown") {
  Pair pair;
  std::vector<Future<int>> answers;
  for (int i = 0; i < 3; ++i)
    answers.push_back(pair.a.call<int()>("b", "slow"));
  auto never_sent = pair.a.call<&endings::add>("b", 1, 2);
  auto incoming = pair.b.call<int()>("a", "slow");
  pair.world.run_for(1ms);
  CHECK(never_sent.get() == 3);
  const TimePoint start = pair.world.loop->now();
  const auto left = pair.a.shutdown(2s);
  CHECK(pair.world.loop->now() - start >= 2s);
  CHECK(pair.world.loop->now() - start < 2010ms);
  CHECK(left == std::vector<std::string>{"b: slow (3 calls)",
                                         "1 call of b, still being answered here: slow"});
  CHECK(pair.world.log.contain("shut down while waiting: b: slow (3 calls)"));
  for (auto& answer : answers) {
    REQUIRE(answer.ready());
    const auto result = outcome(std::move(answer));
    CHECK(result.code() == ErrorCode::shut_down);
    CHECK(may_have_run(result.error()));
    CHECK_THAT(result.message(), Catch::Contains("node a was shut down while 'slow'"));
  }
  pair.world.run_for(1s);
  REQUIRE(incoming.ready());
  const auto lost = outcome(std::move(incoming));
  REQUIRE_FALSE(lost);
  CHECK(lost.code() == ErrorCode::peer_lost);
}

TEST_CASE("a shutdown of no time ends at once") {
  Pair pair;
  auto answer = pair.a.call<int()>("b", "slow");
  pair.world.run_for(1ms);
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.a.shutdown(0s).size() == 1);
  CHECK(pair.world.loop->now() == start);
  CHECK(outcome(std::move(answer)).code() == ErrorCode::shut_down);
}

TEST_CASE("a call that was not sent when the node ends has surely not run") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.world.network->isolate("c");
  auto answer = pair.b.call<&endings::add>("c", 1, 2);
  pair.b.shutdown(0s);
  const auto result = outcome(std::move(answer));
  CHECK(result.code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(result.error()));
  pair.world.run_for(10s);  // what the ended node has left on the loop
}

TEST_CASE("while a node shuts down it refuses new calls of its own and of others") {
  Pair pair;
  pair.a.expose<&endings::add>();
  CHECK(pair.b.call<&endings::add>("a", 1, 2).get() == 3);  // known to both from here on
  auto answer = pair.b.call<int()>("a", "slow");
  pair.world.run_for(1ms);
  std::optional<Result<int>> own;
  std::optional<Result<int>> other;
  pair.world.loop->schedule(pair.world.loop->now() + 100ms, [&] {
    pair.a.call<&endings::add>("b", 1, 2).then([&own](const Result<int>& r) { own = r; });
    pair.b.call<&endings::add>("a", 1, 2).then([&other](const Result<int>& r) { other = r; });
  });
  pair.a.shutdown(1s);
  pair.world.run_for(1s);
  REQUIRE(own);
  REQUIRE(other);
  CHECK(own->code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(own->error()));
  CHECK(other->code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(other->error()));
  CHECK(outcome(std::move(answer)).code() == ErrorCode::peer_lost);
}

TEST_CASE("a second shutdown does nothing") {
  Pair pair;
  CHECK(pair.a.shutdown(1s).empty());
  CHECK(pair.a.shutdown(1s).empty());
}

TEST_CASE("a node that has ended exposes nothing any more, and says so") {
  Pair pair;
  pair.a.shutdown(0s);
  CHECK_THROWS_AS(pair.a.expose<&endings::add>(), ShutDown);
}

TEST_CASE("peers are told of the end at once, with its reason") {
  Pair pair;
  std::string reason;
  pair.b.on_membership([&reason](const MembershipChange& change) { reason = change.reason; });
  pair.a.shutdown(1s);
  pair.world.run_for(0s);
  CHECK_THAT(reason, Catch::Contains("node a has shut down"));
}

TEST_CASE("two nodes that wait for each other's calls end all the same") {
  Pair pair;
  auto first = pair.a.call<int()>("b", "slow");
  auto second = pair.b.call<int()>("a", "slow");
  pair.world.run_for(1ms);
  CHECK_FALSE(pair.a.shutdown(1s).empty());
  CHECK(outcome(std::move(first)).code() == ErrorCode::shut_down);
  pair.world.run_for(0s);
  CHECK(outcome(std::move(second)).code() == ErrorCode::peer_lost);
}

TEST_CASE("what a node has exposed is destroyed with its end, and never used afterwards") {
  test::VirtualWorld world;
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = alive;
  {
    const Node node = world.root();
    node.expose("f", [alive = std::move(alive)] { return *alive; });
    CHECK(node.call<int()>("root", "f").get() == 1);
  }
  CHECK(weak.expired());
}

TEST_CASE("200 nodes are started and ended, one after another") {
  for (int i = 0; i < 200; ++i) {
    const Node root(test::real_root("root", 1));
    root.expose<&endings::add>();
    const Node other(test::real_joining(root, "other", 1));
    CHECK(other.call<&endings::add>("root", i, 1).get() == i + 1);
  }
}

TEST_CASE("a node ends while four threads call and wait, and none of them hangs") {
  for (int round = 0; round < 5; ++round) {
    RealPair pair(2);
    pair.b.expose<&endings::add>();
    std::atomic<bool> stop{false};
    std::atomic<int> answered{0};
    std::atomic<int> failed_otherwise{0};  // checks are not for several threads at once
    std::vector<std::thread> callers;
    std::latch going(4);
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        bool first = true;
        while (!stop) {
          const auto result = outcome(pair.a.call<&endings::add>("b", 1, 2));
          if (result) {
            ++answered;
          } else if (result.code() != ErrorCode::shut_down) {
            ++failed_otherwise;
          }
          if (std::exchange(first, false)) going.count_down();
          if (!result) break;
        }
      });
    }
    going.wait();
    pair.a.shutdown(1s);
    stop = true;
    for (auto& caller : callers)
      caller.join();
    CHECK(answered > 0);
    CHECK(failed_otherwise == 0);
  }
}

TEST_CASE("the callee ends while four threads call it, and none of them hangs") {
  for (int round = 0; round < 5; ++round) {
    RealPair pair(2);
    pair.b.expose<&endings::add>();
    std::atomic<int> answered{0};
    std::vector<std::thread> callers;
    std::latch going(4);
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        for (bool first = true;; first = false) {
          const auto result = outcome(pair.a.call<&endings::add>("b", 1, 2));
          if (first) going.count_down();
          if (!result) break;
          ++answered;
        }
      });
    }
    going.wait();
    pair.b.shutdown(1s);
    for (auto& caller : callers)
      caller.join();
    CHECK(answered > 0);
  }
}

TEST_CASE("a node with threads may be dropped in a callback and in a handler of its own") {
  const Node root(test::real_root("root", 1));
  root.expose<&endings::add>();
  for (int i = 0; i < 20; ++i) {
    auto node = std::make_shared<std::optional<Node>>(test::real_joining(root, "guest", 1));
    std::latch dropped(1);
    if (i % 2 == 0) {
      (*node)->call<&endings::add>("root", 1, 2).then([node, &dropped](const Result<int>&) {
        node->reset();
        dropped.count_down();
      });
      node.reset();
    } else {
      (*node)->expose("end", [&node, &dropped] {
        node->reset();
        dropped.count_down();
      });
      root.notify<void()>("guest", "end");
    }
    dropped.wait();
    // Its name is free again as soon as it has gone.
    bool gone = false;
    while (!gone) {
      for (const PeerInfo& peer : root.peers())
        gone = gone || (peer.name == "guest" && peer.state == PeerState::lost);
    }
  }
}

TEST_CASE("a handler that waits for ever does not hold up the end of its node") {
  RealPair pair(1);
  std::latch waiting(1);
  pair.b.expose("waits", [&] { return pair.b.call<int()>("a", "never").get(); });
  std::vector<Promise<int>> never;
  pair.a.expose("never", [&] {
    auto future = never.emplace_back().get_future();
    waiting.count_down();
    return future;
  });
  auto answer = pair.a.call<int()>("b", "waits");
  waiting.wait();
  const auto left = pair.b.shutdown(20ms);
  CHECK(left.size() == 2);
  CHECK_FALSE(outcome(std::move(answer)));
}

TEST_CASE("a handler that shuts its own node down is told at once that it cannot") {
  RealPair pair(1);
  const auto ends_itself = [&] { return pair.b.shutdown(10s).size(); };
  pair.b.expose("on a worker", ends_itself);
  pair.b.expose("where it is read", ends_itself, {.short_handler = true});
  pair.b.expose("within a wait",
                [&] { return pair.b.call<std::size_t()>("b", "where it is read").get(); });
  for (const char* function : {"on a worker", "where it is read", "within a wait"}) {
    const auto refused = outcome(pair.a.call<std::size_t()>("b", function));
    CHECK(refused.code() == ErrorCode::invalid_argument);
    CHECK_THAT(refused.message(), Catch::Contains("would wait for itself"));
  }
  std::promise<bool> refused;
  pair.b.workers()->post([&] {
    try {
      pair.b.shutdown(10s);
      refused.set_value(false);
    } catch (const InvalidArgument&) {
      refused.set_value(true);
    }
  });
  CHECK(refused.get_future().get());
  CHECK(pair.b.shutdown(1s).empty());
}

TEST_CASE("a callback shuts its own node down, on the thread that reads") {
  RealPair pair(1);
  pair.b.expose<&endings::add>();
  std::promise<std::vector<std::string>> left;
  pair.a.call<&endings::add>("b", 1, 2).then([&](int) { left.set_value(pair.a.shutdown(10s)); });
  CHECK(left.get_future().get().empty());
}

TEST_CASE("a handler that is stuck in its own code does not hold up the end of its node") {
  auto stuck = std::make_shared<std::latch>(1);
  auto release = std::make_shared<std::latch>(1);
  auto over = std::make_shared<std::latch>(1);
  {
    RealPair pair(1);
    pair.b.expose("stuck", [stuck, release, over] {
      stuck->count_down();
      release->wait();
      over->count_down();
    });
    auto answer = pair.a.call<void()>("b", "stuck");
    stuck->wait();
    const auto left = pair.b.shutdown(20ms);
    REQUIRE(left.size() == 1);
    CHECK_THAT(left[0], Catch::Contains("1 call of a, "));
    CHECK_FALSE(outcome(std::move(answer)));
  }
  release->count_down();
  over->wait();
}

}  // namespace shutdown_test
}  // namespace batchrpc
