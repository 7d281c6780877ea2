#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/runners.hpp"

// Nodes on the io_context of the program that embeds them.

namespace embedded {
int add(int a, int b) { return a + b; }

/// Keeps numbers in the order in which they came.
class Ledger {
 public:
  void put(int number, const batchrpc::Bytes& /*ballast*/) { numbers_.push_back(number); }
  [[nodiscard]] std::vector<int> numbers() const { return numbers_; }

 private:
  std::vector<int> numbers_;
};
}  // namespace embedded

namespace batchrpc {
namespace embedded_test {

using namespace std::chrono_literals;
using test::node_on;
using test::outcome;
using test::Runners;

TEST_CASE("a node on a context that nobody runs says so") {
  asio::io_context context;
  NodeOptions options = test::real_root();
  options.io_context = &context;
  options.world_size = 2;
  options.join_timeout = 50ms;
  options.liveness.dead_after = options.liveness.ping_after = 50ms;
  CHECK_THROWS_WITH(Node(options), Catch::Contains("no thread ran NodeOptions::io_context") &&
                                       Catch::Contains("Node::start()"));
}

TEST_CASE("a program that embeds the node runs all of it on its own threads", "[threads]") {
  asio::io_context context;
  auto work = asio::make_work_guard(context);
  std::thread runner([&context] { context.run(); });
  const auto runner_id = runner.get_id();
  {
    NodeOptions options = test::real_root("a");
    options.io_context = &context;
    Node a(options);
    const Node b(test::real_joining(a, "b", 1));
    std::thread::id where;
    a.expose("where", [&] { where = std::this_thread::get_id(); });
    b.call<void()>("a", "where").get();
    CHECK(where == runner_id);
    b.expose<&embedded::add>();
    CHECK(a.call<&embedded::add>("b", 1, 2).get() == 3);
    // A handler on the embedder's thread may wait as well.
    a.expose("nested", [&](int x) { return a.call<&embedded::add>("b", x, 1).get(); });
    CHECK(b.call<int(int)>("a", "nested", 4).get() == 5);
    CHECK(a.shutdown(1s).empty());
  }
  work.reset();
  runner.join();
}

/// A root that lives on the context, which the calling thread runs meanwhile.
Node start_on(asio::io_context& context) {
  NodeOptions options = test::real_root("a");
  options.io_context = &context;
  auto starting = Node::start(options);
  while (!starting.ready())
    context.run_one();
  return std::move(starting).get();
}

TEST_CASE("an embedded node is driven by whoever runs the context, on one thread and nested") {
  asio::io_context context;
  Node a = start_on(context);
  a.expose<&embedded::add>();
  CHECK(a.call<&embedded::add>("a", 1, 2)
            .then([](int sum) { return 2 * sum; })
            .then([&context](int result) {
              context.stop();
              return result;
            })
            .valid());
  context.run();
  // Nobody runs the context any more: the node's end does not wait for that.
  CHECK(a.shutdown(10ms).empty());
  CHECK(outcome(a.call<&embedded::add>("a", 1, 2)).code() == ErrorCode::shut_down);
}

TEST_CASE("threads may take turns at running the context of an embedded node", "[threads]") {
  asio::io_context context;
  Node a = start_on(context);
  a.expose<&embedded::add>();
  auto joining = Node::start(test::real_joining(a, "b", 1));
  while (!joining.ready())
    context.run_one();
  const Node b = std::move(joining).get();
  b.expose("back", [&b](int x) { return b.call<&embedded::add>("a", x, 1).get(); });
  int sum = 0;
  for (int turn = 0; turn < 5; ++turn) {
    std::thread([&] {
      asio::post(context, [&] {
        sum += a.call<int(int)>("b", "back", turn).get();
        context.stop();
      });
      context.restart();
      context.run();
    }).join();
  }
  CHECK(sum == 1 + 2 + 3 + 4 + 5);
}

TEST_CASE("handlers run at once on all threads that run the context", "[threads]") {
  Runners runners(3);
  const Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  std::latch together(3);
  std::atomic<int> outside{0};
  a.expose("meet", [&] {
    if (!runners.has(std::this_thread::get_id())) ++outside;
    together.arrive_and_wait();
  });
  std::vector<Future<void>> meetings;
  for (int i = 0; i < 3; ++i)
    meetings.push_back(b.call<void()>("a", "meet"));
  for (auto& meeting : meetings)
    meeting.get();
  CHECK(outside == 0);
}

TEST_CASE("short handlers and callbacks of an embedded node run one at a time, whoever runs them",
          "[threads]") {
  Runners runners(4);
  const Node a = node_on(runners, test::real_root("a"));
  const Node b = node_on(runners, test::real_joining(a, "b"));
  std::atomic<int> inside{0};
  std::atomic<int> worst{0};
  const auto alone = [&] {
    worst = std::max(worst.load(), ++inside);
    std::this_thread::yield();
    --inside;
  };
  a.expose("short",
           [&](int x) {
             alone();
             return x;
           },
           {.short_handler = true});
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 300; ++k) {
        if (b.call<int(int)>("a", "short", k).get() != k) ++wrong;
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(wrong == 0);
  CHECK(worst == 1);
}

TEST_CASE("handlers of embedded nodes wait for each other, many at once, on a few threads",
          "[threads]") {
  Runners runners(3);
  const Node a = node_on(runners, test::real_root("a"));
  const Node b = node_on(runners, test::real_joining(a, "b"));
  const auto descend = [](const Node& node, const char* other) {
    return [&node, other](int depth) {
      return depth == 0 ? 0 : 1 + node.call<int(int)>(other, "descend", depth - 1).get();
    };
  };
  const bool is_short = GENERATE(false, true);
  a.expose("descend", descend(a, "b"), {.short_handler = is_short});
  b.expose("descend", descend(b, "a"), {.short_handler = is_short});
  std::vector<Future<int>> depths;
  for (int i = 0; i < 20; ++i)
    depths.push_back((i % 2 == 0 ? a : b).call<int(int)>(i % 2 == 0 ? "b" : "a", "descend", 8));
  for (auto& depth : depths)
    CHECK(depth.get() == 8);
}

TEST_CASE("large arguments, objects and losses are borne by a context of several threads",
          "[threads]") {
  Runners runners(4);
  const Node a = node_on(runners, test::real_root("a"));
  a.expose("size", [](Bytes bytes) { return bytes.size(); });
  a.expose_class<embedded::Ledger()>();
  a.expose<&embedded::Ledger::put>();
  a.expose<&embedded::Ledger::numbers>();
  for (int round = 0; round < 3; ++round) {
    const Node b = node_on(runners, test::real_joining(a, "b"));
    const auto ledger = b.create<embedded::Ledger>("a");
    std::vector<int> expected;
    std::vector<Future<std::size_t>> sizes;
    for (int i = 0; i < 20; ++i) {
      sizes.push_back(b.call<std::size_t(Bytes)>("a", "size", Bytes::allocate(300'000)));
      ledger.call<&embedded::Ledger::put>(i, Bytes::allocate(i % 3 == 0 ? 200'000 : 1));
      expected.push_back(i);
    }
    CHECK(ledger.call<&embedded::Ledger::numbers>().get() == expected);
    for (auto& size : sizes)
      CHECK(size.get() == 300'000);
  }
}

TEST_CASE("an embedded node ends on any thread, while calls are under way", "[threads]") {
  for (int round = 0; round < 20; ++round) {
    Runners runners(3);
    const Node a = node_on(runners, test::real_root("a"));
    a.expose<&embedded::add>();
    auto b = std::make_shared<Node>(node_on(runners, test::real_joining(a, "b")));
    std::vector<Future<int>> sums;
    for (int i = 0; i < 100; ++i)
      sums.push_back(b->call<&embedded::add>("a", i, 1));
    if (round % 2 == 0) {
      b.reset();
    } else {  // on a thread of the context, beside what it runs of the node
      std::latch ended(1);
      asio::post(runners.context, [&, last = std::move(b)]() mutable {
        last.reset();
        ended.count_down();
      });
      ended.wait();
    }
    for (auto& sum : sums) {
      const auto result = outcome(std::move(sum));
      CHECK((result || result.code() == ErrorCode::shut_down));
    }
  }
}

TEST_CASE("a callback of one node may end another on the same context", "[threads]") {
  Runners runners(3);
  const Node a = node_on(runners, test::real_root("a"));
  Node b = node_on(runners, test::real_joining(a, "b"));
  a.expose("slow", [](int x) {
    std::this_thread::sleep_for(20ms);
    return x;
  });
  const auto left = a.call<int(int)>("a", "slow", 1).then([&b](int) {
    auto more = b.call<int(int)>("a", "slow", 5);
    return b.shutdown(60s);
  });
  CHECK(left.get().empty());
}

TEST_CASE("a node that ends on top of its own waiting callback ends when that has gone on",
          "[threads]") {
  for (const bool is_short : {false, true}) {
    Runners runners(1);
    auto a = std::make_shared<Node>(node_on(runners, test::real_root("a")));
    const Node b(test::real_joining(*a, "b"));
    Promise<int> answer;
    b.expose("later", [later = std::make_shared<Future<int>>(answer.get_future())] {
      return std::move(*later);
    });
    std::atomic<int> got{0};
    Node* const node = a.get();
    a->expose("ask",
              [&, node] {
                auto pending = node->call<int()>("b", "later");
                asio::post(runners.context, [&] {
                  a.reset();  // on the same thread, within the wait below
                  answer.set_value(4);
                });
                got = std::move(pending).get();
                return got.load();
              },
              {.short_handler = is_short});
    CHECK(b.call<int()>("a", "ask").get() == 4);
    CHECK(got == 4);
  }
}

TEST_CASE("what other tasks of the context throw comes out of a wait, and waits go on",
          "[threads]") {
  Runners runners(1);
  const Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  b.expose("slow", [] { std::this_thread::sleep_for(1ms); });
  a.expose("wait", [&] {
    int thrown = 0;
    for (int i = 0; i < 300; ++i) {
      auto slow = a.call<void()>("b", "slow");
      asio::post(runners.context, [] { throw std::runtime_error("of somebody else"); });
      try {
        slow.get();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
      slow.get();
    }
    return thrown;
  });
  CHECK(b.call<int()>("a", "wait").get() == 300);
}

TEST_CASE("an embedded node is not shut down by its own handler, and may be by a callback",
          "[threads]") {
  Runners runners(2);
  Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  a.expose("end", [&a] { a.shutdown(1s); });
  CHECK(outcome(b.call<void()>("a", "end")).message().find("would wait for itself") !=
        std::string::npos);
  b.expose<&embedded::add>();
  const auto left = a.call<&embedded::add>("b", 1, 2).then([&a](int) { return a.shutdown(1s); });
  CHECK(left.get().empty());
}

}  // namespace embedded_test
}  // namespace batchrpc
