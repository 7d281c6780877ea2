#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"

// The end of a node with threads of its own: whoever calls, waits or is stuck meanwhile, nobody
// hangs.

namespace batchrpc {
namespace shutdown_threads_test {

using namespace std::chrono_literals;
using test::outcome;
using test::RealPair;

namespace endings {
int add(int a, int b) { return a + b; }
}  // namespace endings

TEST_CASE("200 nodes are started and ended, one after another", "[threads]") {
  for (int i = 0; i < 200; ++i) {
    const Node root(test::real_root("root", 1));
    root.expose<&endings::add>();
    const Node other(test::real_joining(root, "other", 1));
    CHECK(other.call<&endings::add>("root", i, 1).get() == i + 1);
  }
}

TEST_CASE("a node ends while four threads call and wait, and none of them hangs", "[threads]") {
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

TEST_CASE("the callee ends while four threads call it, and none of them hangs", "[threads]") {
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

TEST_CASE("a node with threads may be dropped in a callback and in a handler of its own",
          "[threads]") {
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
      root.peer("guest").notify<void()>("end");
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

TEST_CASE("a handler that waits for ever does not hold up the end of its node", "[threads]") {
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

TEST_CASE("a handler that shuts its own node down is told at once that it cannot", "[threads]") {
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

TEST_CASE("a callback shuts its own node down, on the thread that reads", "[threads]") {
  RealPair pair(1);
  pair.b.expose<&endings::add>();
  std::promise<std::vector<std::string>> left;
  pair.a.call<&endings::add>("b", 1, 2).then([&](int) { left.set_value(pair.a.shutdown(10s)); });
  CHECK(left.get_future().get().empty());
}

TEST_CASE("a handler that is stuck in its own code does not hold up the end of its node",
          "[threads]") {
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
    CHECK_THAT(left[0], Catch::Contains("1 call from a, "));
    CHECK_FALSE(outcome(std::move(answer)));
  }
  release->count_down();
  over->wait();
}

}  // namespace shutdown_threads_test
}  // namespace batchrpc
