#include "batchrpc/batch/batcher.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "batch/batching.hpp"

namespace batchrpc {
namespace batcher_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::doubled;
using test::outcome;

TEST_CASE("a handler that returns an empty future fails its rows, and the next batch works") {
  test::VirtualWorld world;
  const Node node = world.root();
  Batcher<int(int)> batcher({}, [](std::vector<int> xs) {
    return xs[0] == 0 ? Future<std::vector<int>>() : make_ready_future(doubled(std::move(xs)));
  });
  node.expose("double", batcher);
  const auto nothing = outcome(node.call<int(int)>("root", "double", 0));
  CHECK(nothing.code() == ErrorCode::invalid_argument);
  CHECK_THAT(nothing.message(), Catch::Contains("an empty future"));
  CHECK(node.call<int(int)>("root", "double", 4).get() == 8);
}

TEST_CASE("a handler that throws fails its rows with its message, and the next batch works") {
  test::VirtualWorld world;
  const Node node = world.root();
  Batcher<int(int)> batcher({}, [](std::vector<int> xs) {
    if (xs[0] < 0) throw std::domain_error("negative: " + std::to_string(xs[0]));
    if (xs[0] == 0) throw 42;
    return doubled(std::move(xs));
  });
  node.expose("f", batcher);
  auto first = batcher(-7);
  auto second = batcher(1);
  CHECK_THROWS_WITH(first.get(), "negative: -7");
  CHECK_THROWS_AS(second.get(), std::domain_error);
  CHECK_THROWS_AS(batcher(0).get(), int);
  CHECK(batcher(3).get() == 6);
  const Node peer = world.join("peer");
  const auto remote = outcome(peer.call<int(int)>("root", "f", -5));
  CHECK(remote.code() == ErrorCode::remote_error);
  CHECK_THAT(remote.message(),
             Catch::Contains("std::domain_error") && Catch::Contains("negative: -5"));
  CHECK(peer.call<int(int)>("root", "f", 5).get() == 10);
}

TEST_CASE("another number of results than rows fails them, and says both numbers") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::size_t results = 0;
  Batcher<int(int)> batcher({}, [&](const std::vector<int>&) { return std::vector<int>(results); });
  node.expose("f", batcher);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    results = count;
    auto first = batcher(1);
    auto second = batcher(2);
    const auto refused = test::outcome(std::move(first));
    CHECK(refused.code() == ErrorCode::invalid_argument);
    CHECK(test::may_have_run(refused.error()));  // the handler has
    const std::string numbers = std::to_string(count) + " results for 2 rows";
    CHECK_THROWS_WITH(second.get(), Catch::Contains(numbers));
  }
  results = 1;
  CHECK(batcher(1).get() == 0);
}

TEST_CASE("a handler may be a coroutine, and fail before or after it suspends") {
  test::VirtualWorld world;
  const Node node = world.root();
  node.expose("limit", [] { return 100; });
  Batcher<int(int)> batcher({}, [&node](std::vector<int> xs) -> Future<std::vector<int>> {
    if (xs[0] < 0) throw std::domain_error("before");
    const int limit = co_await node.call<int()>("root", "limit");
    for (int& x : xs) {
      if (x > limit) throw std::domain_error("after");
      x += limit;
    }
    if (xs[0] == limit) xs.pop_back();
    co_return xs;
  });
  node.expose("f", batcher);
  auto first = batcher(1);
  auto second = batcher(2);
  CHECK(first.get() == 101);
  CHECK(second.get() == 102);
  CHECK_THROWS_WITH(batcher(-1).get(), "before");
  CHECK_THROWS_WITH(batcher(101).get(), "after");
  CHECK_THROWS_AS(batcher(0).get(), InvalidArgument);
  CHECK(batcher(3).get() == 103);
}

TEST_CASE("a coroutine's arguments and captures live until its batch is done") {
  test::VirtualWorld world;
  const Node node = world.root();
  Promise<void> open;
  const auto gate = std::make_shared<Future<void>>(open.get_future());
  const auto row = std::make_shared<int>(5);
  Batcher<int(std::shared_ptr<int>, int)> batcher(
      {},
      [gate](const std::vector<std::shared_ptr<int>>& xs,
             std::vector<int>&& ys) -> Future<std::vector<int>> {
        co_await *gate;
        co_return std::vector<int>{*xs[0] + ys[0]};
      });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto sum = batcher(row, 6);
  world.run_for(1s);
  CHECK(row.use_count() == 2);
  open.set_value();
  CHECK(sum.get() == 11);
  CHECK(row.use_count() == 1);
}

TEST_CASE("a handler that forgets its promise fails its rows, and the next batch works") {
  test::VirtualWorld world;
  const Node node = world.root();
  bool forget = true;
  Batcher<int(int)> batcher({}, [&](std::vector<int> xs) {
    Promise<std::vector<int>> promise;
    auto future = promise.get_future();
    if (!std::exchange(forget, false)) promise.set_value(doubled(std::move(xs)));
    return future;
  });
  node.expose("f", batcher);
  CHECK(outcome(batcher(1)).code() == ErrorCode::broken_promise);
  CHECK(batcher(1).get() == 2);
}

TEST_CASE("rows have several arguments, move-only ones as well, and any result") {
  test::VirtualWorld world;
  const Node node = world.root();
  Batcher<std::unique_ptr<std::string>(std::string, std::unique_ptr<int>, bool)> batcher(
      {}, [](std::vector<std::string> texts, std::vector<std::unique_ptr<int>> numbers,
             std::vector<bool> flags) {
        std::vector<std::unique_ptr<std::string>> results;
        for (std::size_t i = 0; i < texts.size(); ++i) {
          results.push_back(std::make_unique<std::string>(texts[i] + std::to_string(*numbers[i]) +
                                                          (flags[i] ? "!" : "?")));
        }
        return results;
      });
  node.expose("f", batcher);
  auto first = batcher("a", std::make_unique<int>(1), true);
  auto second = batcher("b", std::make_unique<int>(2), false);
  CHECK(*std::move(first).get() == "a1!");
  CHECK(*std::move(second).get() == "b2?");
  Batcher<bool()> flags({}, [] { return std::vector<bool>{true}; });
  node.expose("flags", flags);
  CHECK(flags().get());
}

TEST_CASE("a row's callback may queue the next row, thousands of times") {
  Batching b({});
  constexpr int kRows = 20'000;
  int done = 0;
  std::function<void()> next = [&] {
    b.batcher(done).then([&](int) {
      if (++done < kRows) next();
    });
  };
  next();
  b.world.run_for(1s);
  CHECK(done == kRows);
}

TEST_CASE("a row whose future is dropped is computed all the same") {
  Batching b({.max_wait = 1ms});
  { const auto dropped = b.batcher(1); }
  b.add({2});
  b.world.run_for(1s);
  CHECK(b.batches == Batches{{1, 2}});
  CHECK(b.rows[0].get() == 4);
}

TEST_CASE("a batcher exposed on a real node works from several peers, on the workers",
          "[threads]") {
  NodeOptions options;
  options.name = "root";
  const Node root(options);
  std::atomic<int> running{0};
  std::atomic<bool> concurrent{false};
  std::atomic<int> largest{0};
  Batcher<int(int)> batcher({.max_size = 16}, [&](std::vector<int> xs) {
    if (++running > 1) concurrent = true;
    largest = std::max<int>(largest, static_cast<int>(xs.size()));
    auto result = doubled(std::move(xs));
    --running;
    return result;
  });
  root.expose("double", batcher);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      NodeOptions joining;
      joining.name = "caller" + std::to_string(caller);
      joining.rank = -1;
      joining.join = root.address();
      joining.num_worker_threads = 1;
      const Node node(joining);
      for (int round = 0; round < 50; ++round) {
        std::vector<Future<int>> rows;
        for (int i = 0; i < 10; ++i)
          rows.push_back(node.call<int(int)>("root", "double", 1000 * caller + i));
        for (int i = 0; i < 10; ++i) {
          if (rows[static_cast<std::size_t>(i)].get() != 2 * (1000 * caller + i)) ++wrong;
        }
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(wrong == 0);
  CHECK_FALSE(concurrent);
  CHECK(largest > 1);
  CHECK(largest <= 16);
}

TEST_CASE("a short handler runs where the messages are read", "[threads]") {
  NodeOptions options;
  options.name = "root";
  const Node root(options);
  const auto worker = root.workers();
  std::set<std::thread::id> ids;
  Batcher<int(int)> batcher({.short_handler = true}, [&](std::vector<int> xs) {
    ids.insert(std::this_thread::get_id());
    return doubled(std::move(xs));
  });
  root.expose("double", batcher);
  for (int i = 0; i < 20; ++i)
    CHECK(root.call<int(int)>("root", "double", i).get() == 2 * i);
  const auto id = make_ready_future().then(worker, [] { return std::this_thread::get_id(); }).get();
  CHECK(ids.count(id) == 0);
}

/// Moving it throws when it holds a certain value.
struct Brittle {
  Brittle(int v) : value(v) {}  // NOLINT: implicit
  Brittle(Brittle&& other) : value(other.value) {
    if (armed && value == 2) throw std::runtime_error("too brittle to be moved");
  }
  Brittle& operator=(Brittle&&) = default;
  int value;
  static inline bool armed = false;
};

TEST_CASE("a result that cannot be moved fails rows, not the process") {
  test::VirtualWorld world;
  const Node node = world.root();
  Batcher<Brittle(int)> batcher({}, [](const std::vector<int>& xs) {
    std::vector<Brittle> results;
    results.reserve(xs.size());
    for (const int x : xs)
      results.emplace_back(x);
    Brittle::armed = true;
    return results;
  });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto first = batcher(1);
  auto second = batcher(2);
  auto third = batcher(3);
  world.run_for(1s);
  Brittle::armed = false;
  CHECK(first.ready());
  CHECK(second.ready());
  CHECK(third.ready());
  CHECK_FALSE(outcome(second.then([](const Brittle& b) { return b.value; })));
  CHECK(outcome(third.then([](const Brittle& b) { return b.value; })).value() == 3);
}

TEST_CASE("a tuple of vectors is a vector of tuples", "[threads]") {
  using Row = std::tuple<int, std::string>;
  Batcher<Row(int)> batcher({.min_size = 2}, [](std::vector<int> xs) {
    return std::tuple(xs, std::vector<std::string>(xs.size(), "text"));
  });
  auto first = batcher(1);
  auto second = batcher(2);
  CHECK(first.get() == Row(1, "text"));
  CHECK(second.get() == Row(2, "text"));
}

}  // namespace batcher_test
}  // namespace batchrpc
