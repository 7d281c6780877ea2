#include "batchrpc/batch/batcher.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "batch/batching.hpp"

namespace batchrpc {
namespace batcher_life_test {

using namespace std::chrono_literals;
using test::Batches;
using test::doubled;
using test::outcome;

TEST_CASE("a batcher that is closed fails the rows that wait and those that come") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::vector<Promise<std::vector<int>>> running;
  Batcher<int(int)> batcher({.max_size = 1}, [&](const std::vector<int>&) {
    running.emplace_back();
    return running.back().get_future();
  });
  node.expose("f", batcher);
  auto runs = batcher(1);
  world.run_for(0s);
  auto waits = batcher(2);
  batcher.close();
  REQUIRE(waits.ready());
  CHECK(outcome(std::move(waits)).code() == ErrorCode::shut_down);
  CHECK(outcome(batcher(3)).code() == ErrorCode::shut_down);
  batcher.close();
  running[0].set_value({5});
  CHECK(runs.get() == 5);
  world.run_for(1s);
}

TEST_CASE("promise 8: rows of others that wait when the batcher's node ends have never run") {
  test::VirtualWorld world;
  Node node = world.root("root");
  const Node client = world.join("client");
  const Batcher<int(int)> batcher({.max_wait = 1h}, doubled);
  node.expose("f", batcher);
  auto row = client.peer("root").with({.timeout = Duration::max()}).call<int(int)>("f", 1);
  world.run_for(1s);
  CHECK_FALSE(row.ready());
  node.shutdown(1s);
  const auto result = outcome(std::move(row));
  CHECK(result.code() == ErrorCode::shut_down);
  CHECK_FALSE(test::may_have_run(result.error()));
}

TEST_CASE("when the last handle of a batcher is gone, rows that wait fail with ShutDown") {
  test::VirtualWorld world;
  const Node node = world.root();
  auto batcher = std::make_unique<Batcher<int(int)>>(BatchOptions{.max_wait = 1h}, doubled);
  node.expose("f", *batcher);
  auto copy = *batcher;
  auto row = copy(1);
  batcher.reset();
  CHECK(node.unexpose("f"));
  CHECK_FALSE(row.ready());
  { const auto last = std::move(copy); }
  REQUIRE(row.ready());
  CHECK(outcome(std::move(row)).code() == ErrorCode::shut_down);
}

TEST_CASE(
    "calls of peers keep the batcher that they wait in, until they are done or its node ends") {
  test::VirtualWorld world;
  const Node a = world.root("a");
  const auto alive = std::make_shared<int>();
  Future<int> last;
  {
    const Node b = world.join("b");
    const auto expose = [&](Duration max_wait) {
      b.expose("f", Batcher<int(int)>({.max_wait = max_wait}, [alive](std::vector<int> xs) {
                 return doubled(std::move(xs));
               }));
    };
    expose(10s);
    auto row = a.call<int(int)>("b", "f", 4);
    world.run_for(1s);
    CHECK(b.unexpose("f"));
    CHECK(row.get() == 8);
    world.run_for(1s);
    CHECK(alive.use_count() == 1);

    expose(1h);
    last = a.call<int(int)>("b", "f", 5);
    world.run_for(1s);
    CHECK(b.unexpose("f"));
    CHECK(alive.use_count() == 2);
  }
  CHECK_FALSE(outcome(std::move(last)));
  world.run_for(1s);
  CHECK(alive.use_count() == 1);
}

TEST_CASE("a batcher may be dropped and closed in its own handler and in its callbacks") {
  test::VirtualWorld world;
  const Node node = world.root();
  for (const int where : {0, 1, 2, 3}) {
    std::optional<Batcher<int(int)>> batcher;
    batcher.emplace(BatchOptions{.max_size = 1}, [&](std::vector<int> xs) {
      if (where == 0) batcher.reset();
      if (where == 1) batcher->close();
      return doubled(std::move(xs));
    });
    node.expose("f", *batcher);
    node.unexpose("f");
    int result = 0;
    std::optional<Result<int>> second;
    (*batcher)(4).then([&](int x) {
      result = x;
      if (where == 2) batcher.reset();
      if (where == 3) batcher->close();
    });
    (*batcher)(5).then([&second](const Result<int>& r) { second = r; });
    world.run_for(1s);
    CHECK(result == 8);
    REQUIRE(second);
    CHECK(second->code() == ErrorCode::shut_down);
  }
}

TEST_CASE("the last handle may be dropped by the callback of a row that fails") {
  test::VirtualWorld world;
  const Node node = world.root();
  using B = Batcher<int(int)>;
  const auto drops_it = [&](const BatchOptions& options, const auto& what) {
    auto batcher = std::make_unique<B>(options, doubled);
    detail::HostedAccess::exposed_on(*batcher, detail::NodeAccess::host(node));
    bool told = false;
    batcher->many().with({.timeout = 1s})({1, 2, 3}).then([&](const Result<std::vector<int>>&) {
      told = true;
      batcher.reset();
    });
    what(*batcher);
    CHECK(told);
    CHECK_FALSE(batcher);
  };
  const BatchOptions waits{.max_size = 4, .max_wait = 1h, .max_queue = 4};
  drops_it(waits, [](const B& batcher) { batcher.close(); });
  drops_it(waits, [](const B& batcher) {
    batcher.set_options({.max_size = 2, .max_wait = 1h, .max_queue = 4});
  });
  drops_it(waits, [&](const B& batcher) {
    world.loop->advance(1s);  // they have expired, and make room
    std::stop_source stop;
    (void)batcher.many().with({.stop = stop.get_token()})({4, 5});
  });
}

/// Runs tasks when it is told to.
class ByHand final : public Executor {
 public:
  void post(Task task) override { tasks.push_back(std::move(task)); }
  std::vector<Task> tasks;
};

TEST_CASE("the handler runs on the executor that was given") {
  test::VirtualWorld world;
  const Node node = world.root();
  const auto executor = std::make_shared<ByHand>();
  Batches batches;
  Batcher<int(int)> batcher({.executor = executor}, [&](std::vector<int> xs) {
    batches.push_back(xs);
    return doubled(std::move(xs));
  });
  node.expose("f", batcher);
  auto row = batcher(1);
  world.run_for(1s);
  REQUIRE(executor->tasks.size() == 1);
  auto other = batcher(2);  // comes along: the handler has not begun
  CHECK(executor->tasks.size() == 1);
  std::exchange(executor->tasks, {})[0]();
  CHECK(batches == Batches{{1, 2}});
  CHECK(row.get() == 2);
  CHECK(other.get() == 4);
}

TEST_CASE("a batcher whose executor drops its tasks fails the rows, rather than let them wait") {
  test::VirtualWorld world;
  const Node node = world.root();
  const auto executor = std::make_shared<ByHand>();
  Batcher<int(int)> batcher({.executor = executor}, doubled);
  node.expose("f", batcher);
  auto row = batcher(1);
  executor->tasks.clear();
  REQUIRE(row.ready());
  CHECK(outcome(std::move(row)).code() == ErrorCode::shut_down);
}

TEST_CASE("rows that wait when the batcher's node ends fail with ShutDown") {
  for (const bool timed : {false, true}) {
    test::VirtualWorld world;
    std::optional<Node> node(world.root());
    const Node peer = world.join("peer");
    BatchOptions options;
    if (timed) {
      options.max_wait = 1h;
    } else {
      options.all_of = {"peer"};
    }
    const Batcher<int(int)> batcher(options, doubled);
    node->expose("f", batcher);
    auto row = batcher(1);
    world.run_for(1s);
    CHECK_FALSE(row.ready());
    node.reset();
    world.run_for(0s);
    REQUIRE(row.ready());
    CHECK(outcome(std::move(row)).code() == ErrorCode::shut_down);
    auto late = batcher(2);
    world.run_for(2h);
    REQUIRE(late.ready());
    CHECK(outcome(std::move(late)).code() == ErrorCode::shut_down);
  }
}

TEST_CASE("a batcher without a node has a thread of its own, and real time", "[threads]") {
  std::set<std::thread::id> ids;
  Batcher<int(int)> batcher({.max_size = 4, .max_wait = 2ms}, [&](std::vector<int> xs) {
    ids.insert(std::this_thread::get_id());
    return doubled(std::move(xs));
  });
  const auto start = std::chrono::steady_clock::now();
  CHECK(batcher(1).get() == 2);
  CHECK(std::chrono::steady_clock::now() - start >= 2ms);
  std::vector<Future<int>> rows;
  for (int i = 0; i < 100; ++i)
    rows.push_back(batcher(i));
  for (int i = 0; i < 100; ++i)
    CHECK(rows[static_cast<std::size_t>(i)].get() == 2 * i);
}

TEST_CASE("a batcher without a node is used by many threads, and never runs twice at once",
          "[threads]") {
  std::atomic<int> running{0};
  std::atomic<bool> concurrent{false};
  Batcher<int(int)> batcher({.max_queue = 100'000}, [&](std::vector<int> xs) {
    if (++running > 1) concurrent = true;
    auto result = doubled(std::move(xs));
    --running;
    return result;
  });
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (batcher(i).get() != 2 * i) ++wrong;
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(wrong == 0);
  CHECK_FALSE(concurrent);
}

TEST_CASE("a batcher without a node is closed and dropped with rows waiting, on several threads",
          "[threads]") {
  std::atomic<int> wrong{0};  // a check of Catch's belongs to one thread
  for (int round = 0; round < 50; ++round) {
    std::optional<Batcher<int(int)>> batcher;
    batcher.emplace(BatchOptions{.max_size = 2}, doubled);
    std::vector<std::thread> callers;
    std::latch going(3);
    for (int caller = 0; caller < 3; ++caller) {
      callers.emplace_back([copy = *batcher, &going, &wrong] {
        going.count_down();
        for (int i = 0; i < 20; ++i) {
          const auto result = outcome(copy(i));
          if (!result && result.code() != ErrorCode::shut_down) ++wrong;
        }
      });
    }
    going.wait();
    if (round % 2 == 0) batcher->close();
    batcher.reset();
    for (auto& caller : callers)
      caller.join();
  }
  CHECK(wrong == 0);
}

TEST_CASE("a batcher waits for peers only where it knows any: without a node all_of is refused",
          "[threads]") {
  const Batcher<int(int)> batcher({.all_of = {"a"}}, doubled);
  const auto refused = outcome(batcher(1));
  REQUIRE_FALSE(refused);
  CHECK(refused.code() == ErrorCode::invalid_argument);
  CHECK_THAT(refused.message(), Catch::Contains("BatchOptions::all_of"));

  const Batcher<int(int)> later({}, doubled);
  CHECK(later(1).get() == 2);
  CHECK_THROWS_WITH(later.set_options({.all_of = {"a"}}), Catch::Contains("BatchOptions::all_of"));
  CHECK(later(2).get() == 4);
}

TEST_CASE("the last handle may be dropped by a callback while several batches start", "[threads]") {
  std::optional<Batcher<int(int)>> batcher;
  batcher.emplace(BatchOptions{.max_size = 1, .parallelism = 4, .short_handler = true}, doubled);
  batcher->pause();
  std::vector<Future<void>> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back((*batcher)(i).then([&, i](const Result<int>&) {
      if (i == 0) batcher.reset();
    }));
  }
  batcher->resume();
  for (auto& row : rows)
    CHECK(row.ready());
}

}  // namespace batcher_life_test
}  // namespace batchrpc
