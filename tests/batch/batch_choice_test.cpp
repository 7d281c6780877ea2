#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// Which rows a batch is made of, and in which order they lie in it.
namespace batchrpc {
namespace batch_choice_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::HeldBatching;
using test::outcome;

TEST_CASE("min_size rows start a batch, and fewer wait") {
  Batching b({.min_size = 3});
  b.add({1, 2});
  b.world.run_for(1h);
  CHECK(b.batches.empty());
  b.add({3});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2, 3}});
  CHECK(b.batcher.statistics().reasons[static_cast<std::size_t>(BatchReason::min_size)] == 1);
}

TEST_CASE("max_wait ends the waiting for min_size") {
  Batching b({.max_wait = 5ms, .min_size = 3});
  const Duration start = b.world.time();
  b.add({1});
  b.world.run_for(1s);
  CHECK(b.times == std::vector<Duration>{start + 5ms});
  b.add({2, 3, 4});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}, {2, 3, 4}});
}

TEST_CASE("rows of different keys go into different batches, each with its own wait") {
  Batching b({.max_size = 2, .max_wait = 10ms}, {.key = [](int x) { return x % 2; }});
  const Duration start = b.world.time();
  b.add({1});
  b.world.run_for(1ms);
  b.add({2});
  b.world.run_for(1ms);
  b.add({3});  // fills the odd ones' batch
  b.world.run_for(1s);
  CHECK(b.batches == Batches{{1, 3}, {2}});
  CHECK(b.times == std::vector<Duration>{start + 2ms, start + 11ms});
}

TEST_CASE("of the keys that are due the one whose row came first goes first") {
  HeldBatching b({}, {.key = [](int x) { return x % 3; }});
  b.add(0);
  b.world.run_for(0s);
  for (const int x : {1, 2, 4, 5, 3})
    b.add(x);
  for (std::size_t i = 0; i < 4; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1, 4}, {2, 5}, {3}});
}

TEST_CASE("thousands of keys are no burden once their rows are gone") {
  Batching b({.max_queue = 10'000}, {.key = [](int x) { return x; }});
  for (int round = 0; round < 3; ++round) {
    for (int x = 0; x < 2000; ++x)
      b.add({x});
    b.world.run_for(1s);
  }
  CHECK(b.batches.size() == 6000);
  CHECK(b.rows.back().get() == 2 * 1999);
}

TEST_CASE("rows of higher priority go first") {
  HeldBatching b({.max_size = 2}, {.priority = [](int x) { return x / 10; }});
  b.add(0);
  b.world.run_for(0s);
  for (const int x : {1, 2, 11, 3, 21, 12})
    b.add(x);
  for (std::size_t i = 0; i < 4; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {21, 11}, {12, 1}, {2, 3}});
}

TEST_CASE("a row is overtaken by max_overtaking rows at the most") {
  HeldBatching b({.max_size = 1, .max_overtaking = 3},
                 {.priority = [](int x) { return x < 0 ? 0 : 1; }});
  b.add(0);
  b.world.run_for(0s);
  b.add(-1);
  b.add(-2);
  for (int x = 1; x <= 8; ++x)
    b.add(x);
  for (std::size_t i = 0; i < 11; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1}, {2}, {3}, {-1}, {-2}, {4}, {5}, {6}, {7}, {8}});
}

TEST_CASE("a key of low priority is not passed over for ever") {
  HeldBatching b({.max_size = 1, .max_overtaking = 3},
                 {.key = [](int x) { return x < 0 ? 0 : 1; },
                  .priority = [](int x) { return x < 0 ? 0 : 1; }});
  b.add(0);
  b.world.run_for(0s);
  b.add(-1);
  for (int x = 1; x <= 6; ++x)
    b.add(x);
  for (std::size_t i = 0; i < 8; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1}, {2}, {3}, {-1}, {4}, {5}, {6}});
}

TEST_CASE("a row is not preferred for what another of its key had to wait") {
  HeldBatching b({.max_size = 1, .max_overtaking = 3},
                 {.key = [](int x) { return x < 0 ? 0 : 1; },
                  .priority = [](int x) { return x < 0 ? 0 : 1; }});
  b.add(0);
  b.world.run_for(0s);
  auto passed = b.batcher.with({.timeout = 1s})(-1);
  for (int x = 1; x <= 5; ++x)
    b.add(x);
  for (std::size_t i = 0; i < 3; ++i)
    b.answer(i);
  b.world.run_for(1s);
  CHECK(outcome(std::move(passed)).code() == ErrorCode::timed_out);
  b.add(-2);
  for (std::size_t i = 3; i < 7; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1}, {2}, {3}, {4}, {5}, {-2}});
}

TEST_CASE("order_by_peer puts rows in the order of ranks, whatever the order of arrival") {
  for (const bool by_peer : {true, false}) {
    HeldBatching b({.order_by_peer = by_peer});
    const Node first = b.world.join("first");
    const Node second = b.world.join("second");
    REQUIRE(first.rank() < second.rank());
    b.add(0);
    b.world.run_for(0s);
    b.call(second, 21);
    b.call(first, 11);
    b.call(second, 22);
    b.add(1);
    b.answer(0);
    CHECK(b.batches[1] ==
          (by_peer ? std::vector<int>{1, 11, 21, 22} : std::vector<int>{21, 11, 22, 1}));
    b.answer(1);
    for (std::size_t i = 1; i < 5; ++i)
      CHECK(b.rows[i].get() == 2 * std::vector<int>{0, 21, 11, 22, 1}[i]);
  }
}

TEST_CASE("callers of one row and of many share a batch") {
  HeldBatching b({});
  b.node.expose("double_many", b.batcher.many());
  const Node peer = b.world.join("peer");
  b.add(0);
  b.world.run_for(0s);
  auto local = b.batcher.many()({1, 2});
  b.add(3);
  auto remote = peer.call<std::vector<int>(std::vector<int>)>("root", "double_many",
                                                              std::vector<int>{4, 5, 6});
  b.world.run_for(0s);
  b.answer(0);
  CHECK(b.batches == Batches{{0}, {1, 2, 3, 4, 5, 6}});
  b.answer(1);
  CHECK(local.get() == std::vector<int>{2, 4});
  CHECK(b.rows[1].get() == 6);
  CHECK(remote.get() == std::vector<int>{8, 10, 12});
}

TEST_CASE("the rows of one call stay together") {
  HeldBatching b({.max_size = 4});
  b.add(0);
  b.world.run_for(0s);
  auto first = b.batcher.many()({1, 2, 3});
  auto second = b.batcher.many()({4, 5});
  b.add(6);
  b.answer(0);
  b.answer(1);
  CHECK(b.batches == Batches{{0}, {1, 2, 3}, {4, 5, 6}});
  b.answer(2);
  CHECK(second.get() == std::vector<int>{8, 10});
  CHECK(first.get().size() == 3);
}

TEST_CASE("a call of no rows, of unequal ones, or of more than a batch is refused") {
  Batching b({.max_size = 4});
  const auto none = outcome(b.batcher.many()({}));
  CHECK(none.code() == ErrorCode::invalid_argument);
  CHECK_THAT(none.message(), Catch::Contains("has no rows"));
  const auto many = outcome(b.batcher.many()({1, 2, 3, 4, 5}));
  CHECK(many.code() == ErrorCode::invalid_argument);
  CHECK_THAT(many.message(),
             Catch::Contains("5 rows") && Catch::Contains("BatchOptions::max_size"));
  const Batcher<int(int, int)> sums(
      {}, [](const std::vector<int>& a, const std::vector<int>&) { return a; });
  const auto unequal = outcome(sums.many()({1, 2}, {1}));
  CHECK(unequal.code() == ErrorCode::invalid_argument);
  CHECK_THAT(unequal.message(), Catch::Contains("2 and 1"));
  CHECK(b.batcher.statistics().invalid == 6);
}

TEST_CASE("rules look at each row of a call of many") {
  HeldBatching b({}, {.check =
                          [](int x) {
                            if (x == 13)
                              throw InvalidArgument("13 came, anything else is expected");
                          },
                      .key = [](int x) { return x % 2; },
                      .priority = [](int x) { return x; }});
  b.add(0);
  b.world.run_for(0s);
  const auto bad = outcome(b.batcher.many()({1, 13}));
  CHECK(bad.code() == ErrorCode::invalid_argument);
  CHECK(bad.message() == "13 came, anything else is expected");
  const auto mixed = outcome(b.batcher.many()({1, 2}));
  CHECK_THAT(mixed.message(), Catch::Contains("BatchRules::key") && Catch::Contains("'1' and '0'"));
  b.add(7);
  auto many = b.batcher.many()({1, 9});
  b.answer(0);
  b.answer(1);
  CHECK(b.batches == Batches{{0}, {1, 9, 7}});
  CHECK(many.get() == std::vector<int>{2, 18});
}

TEST_CASE("a row that a rule refuses fails alone, also a peer's, and never runs") {
  Batching b(
      {}, {.check = [](int x) {
        if (x < 0)
          throw InvalidArgument("a row is " + std::to_string(x) + ", expected is at least 0");
      }});
  const Node peer = b.world.join("peer");
  auto bad = peer.call<int(int)>("root", "double", -1);
  auto good = peer.call<int(int)>("root", "double", 1);
  CHECK(good.get() == 2);
  const auto refused = outcome(std::move(bad));
  CHECK(refused.code() == ErrorCode::invalid_argument);
  CHECK_THAT(refused.message(), Catch::Contains("a row is -1, expected is at least 0"));
  CHECK_FALSE(test::may_have_run(refused.error()));
  CHECK(b.batches == Batches{{1}});
}

// --- preferred sizes

struct Padded {
  explicit Padded(const BatchOptions& options)
      : batcher(options, [this](std::vector<int> xs, const BatchInfo& info) {
          batches.push_back(xs);
          paddings.push_back(info.padding);
          return xs;
        }) {
    node.expose("f", batcher);
  }
  std::vector<int> run(int count) {
    batcher.pause();
    std::vector<Future<int>> rows;
    for (int i = 1; i <= count; ++i)
      rows.push_back(batcher(i));
    batcher.resume();
    std::vector<int> results;
    for (auto& row : rows)
      results.push_back(row.get());
    return results;
  }
  test::VirtualWorld world;
  Node node = world.root();
  Batches batches;
  std::vector<std::size_t> paddings;
  Batcher<int(int)> batcher;
};

TEST_CASE("a batch is padded up to a preferred size with copies of its last row") {
  Padded p({.max_size = 16, .preferred_sizes = {1, 4, 16}});
  CHECK(p.run(3) == std::vector<int>{1, 2, 3});
  CHECK(p.batches == Batches{{1, 2, 3, 3}});
  CHECK(p.paddings == std::vector<std::size_t>{1});
  CHECK(p.batcher.statistics().padding == 1);
}

TEST_CASE("a batch is cut at a preferred size when the next is for its greater part padding") {
  Padded p({.max_size = 16, .preferred_sizes = {1, 4, 16}});
  CHECK(p.run(6) == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(p.batches == Batches{{1, 2, 3, 4}, {5}, {6}});
  p.batches.clear();
  CHECK(p.run(9).size() == 9);
  REQUIRE(p.batches.size() == 1);
  CHECK(p.batches[0].size() == 16);
}

TEST_CASE("the largest preferred size starts a batch, and bounds it") {
  Batching b({.max_size = 10, .max_wait = 1h, .preferred_sizes = {2, 4}});
  b.add({1, 2, 3});
  b.world.run_for(1s);
  CHECK(b.batches.empty());
  b.add({4, 5});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2, 3, 4}});
  CHECK(b.batcher.statistics().reasons[static_cast<std::size_t>(BatchReason::preferred)] == 1);
}

TEST_CASE("every number of rows is answered with any preferred sizes") {
  for (const auto& sizes :
       std::vector<std::vector<std::size_t>>{{1}, {3}, {2, 5}, {1, 4, 16}, {7, 8}}) {
    Padded p({.max_size = 16, .preferred_sizes = sizes});
    for (int count = 1; count <= 40; ++count) {
      std::vector<int> expected;
      for (int i = 1; i <= count; ++i)
        expected.push_back(i);
      REQUIRE(p.run(count) == expected);
    }
    for (const auto& batch : p.batches)
      REQUIRE(std::find(sizes.begin(), sizes.end(), batch.size()) != sizes.end());
  }
}

TEST_CASE("the lowest priority there is goes last") {
  const auto priority = [](int x) { return x == 1 ? std::numeric_limits<int>::min() : 0; };
  HeldBatching b({.max_size = 1}, {.key = [](int x) { return x; }, .priority = priority});
  b.add(0);
  b.world.run_for(0s);
  b.add(1);
  b.add(2);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(b.batches.size() == i + 1);
    b.answer(i);
  }
  CHECK(b.batches == Batches{{0}, {2}, {1}});
}

TEST_CASE("what preferred sizes cut off of min_size rows starts as well") {
  HeldBatching b({.max_size = 8, .min_size = 3, .preferred_sizes = {2, 8}});
  b.add(1);
  b.add(2);
  b.add(3);
  b.world.run_for(0s);
  b.answer(0);
  b.world.run_for(0s);
  REQUIRE(b.batches == Batches{{1, 2}, {3, 3}});
  b.answer(1);
  CHECK(b.batcher.statistics().reasons[static_cast<std::size_t>(BatchReason::min_size)] == 2);
}

TEST_CASE("a call of more rows than the largest preferred size is refused") {
  Batching b({.max_size = 64, .preferred_sizes = {1, 4}});
  const auto refused = outcome(b.batcher.many()({1, 2, 3, 4, 5}));
  CHECK(refused.code() == ErrorCode::invalid_argument);
  CHECK_THAT(refused.message(), Catch::Contains("at most 4 (BatchOptions::preferred_sizes)"));
  CHECK(b.batcher.statistics().invalid == 5);
}

}  // namespace batch_choice_test
}  // namespace batchrpc
