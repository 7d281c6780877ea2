#include <catch2/catch.hpp>
#include <string>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// Who finds room in a full queue beside a caller that has most of it.
namespace batchrpc {
namespace batch_fairness_test {

using namespace std::chrono_literals;
using test::Batches;
using test::HeldBatching;
using test::outcome;

/// A batcher of texts whose first batch runs until the end, so that what comes behind it waits.
struct Texts {
  explicit Texts(const BatchOptions& options)
      : batcher(options, [this](const std::vector<std::string>& texts) {
          sizes.push_back(texts.size());
          return running.emplace_back().get_future();
        }) {
    node.expose("text", batcher);
    rows.push_back(batcher("first"));
    world.run_for(0s);
  }
  Future<int> call(const Node& peer, std::size_t bytes) {
    auto row = peer.call<int(std::string)>("root", "text", std::string(bytes, 'x'));
    world.run_for(0s);
    return row;
  }
  void answer_all() {
    for (std::size_t i = 0; i < running.size(); ++i) {
      running[i].set_value(std::vector<int>(sizes[i], 1));
      world.run_for(0s);
    }
  }

  std::deque<Promise<std::vector<int>>> running;
  test::VirtualWorld world;
  Node node = world.root();
  std::vector<std::size_t> sizes;
  Batcher<int(std::string)> batcher;
  std::vector<Future<int>> rows;
};

TEST_CASE("a caller that fills the queue with bytes makes way for others, up to its share") {
  for (const OnFull on_full : {OnFull::reject, OnFull::wait}) {
    Texts b({.max_queue_bytes = 10'000, .on_full = on_full});
    const Node hog = b.world.join("hog");
    const Node other = b.world.join("other");
    std::vector<Future<int>> of_hog;
    for (int i = 0; i < 4; ++i)
      of_hog.push_back(b.call(hog, 2'000));
    auto large = b.call(other, 4'000);  // for which two of the hog's go
    CHECK_FALSE(large.ready());
    CHECK_FALSE(of_hog[1].ready());
    for (const std::size_t i : {2U, 3U}) {
      const auto displaced = outcome(std::move(of_hog[i]));
      CHECK(displaced.code() == ErrorCode::overloaded);
      CHECK_THAT(displaced.message(), Catch::Contains("max_queue_bytes") &&
                                          Catch::Contains("another caller needed room"));
    }
    const auto beyond_share = outcome(b.call(other, 4'000));
    CHECK(beyond_share.code() == ErrorCode::overloaded);
    b.answer_all();
    CHECK(large.get() == 1);
    CHECK(of_hog[0].get() == 1);
    CHECK(of_hog[1].get() == 1);
  }
}

TEST_CASE("a caller whose rows are all that is held makes way for another's") {
  HeldBatching b({.max_size = 1, .max_queue = 2, .on_full = OnFull::wait});
  const Node hog = b.world.join("hog");
  const Node other = b.world.join("other");
  b.add(0);
  b.world.run_for(0s);
  for (int x = 1; x <= 4; ++x)
    b.call(hog, x);  // two are in the queue, and two are held
  b.call(other, 11);
  const auto displaced = outcome(std::move(b.rows[4]));
  CHECK(displaced.code() == ErrorCode::overloaded);
  CHECK(outcome(std::move(b.call(other, 12))).code() == ErrorCode::overloaded);
  for (std::size_t i = 0; i < 5; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1}, {2}, {3}, {11}});
}

TEST_CASE("a caller of many rows displaces as many calls as it takes") {
  HeldBatching b({.max_size = 4, .max_queue = 8});
  b.node.expose("many", b.batcher.many());
  const Node hog = b.world.join("hog");
  const Node other = b.world.join("other");
  b.add(0);
  b.world.run_for(0s);
  for (int x = 1; x <= 8; ++x)
    b.call(hog, x);
  auto many =
      other.call<std::vector<int>(std::vector<int>)>("root", "many", std::vector<int>{11, 12, 13});
  b.world.run_for(0s);
  for (std::size_t i = 0; i < 3; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1, 2, 3, 4}, {5, 11, 12, 13}});
  CHECK(many.get() == std::vector<int>{22, 24, 26});
  for (const std::size_t i : {6U, 7U, 8U})
    CHECK(outcome(std::move(b.rows[i])).code() == ErrorCode::overloaded);
}

TEST_CASE("a caller is not left with less than the one that it makes way for") {
  HeldBatching b({.max_size = 4, .max_queue = 4});
  b.node.expose("many", b.batcher.many());
  const Node hog = b.world.join("hog");
  const Node other = b.world.join("other");
  b.add(0);
  b.world.run_for(0s);
  auto many = hog.call<std::vector<int>(std::vector<int>)>("root", "many", std::vector{1, 2, 3, 4});
  b.world.run_for(0s);
  b.call(other, 11);
  REQUIRE(b.rows[1].ready());
  CHECK(outcome(std::move(b.rows[1])).code() == ErrorCode::overloaded);
  b.answer(0);
  b.answer(1);
  CHECK(many.get() == std::vector<int>{2, 4, 6, 8});
}

TEST_CASE("nothing gives way to a row that would not fit all the same") {
  HeldBatching b({.max_size = 4, .max_queue = 4});
  b.node.expose("many", b.batcher.many());
  const Node hog = b.world.join("hog");
  const Node other = b.world.join("other");
  b.add(0);
  b.world.run_for(0s);
  for (int x = 1; x <= 4; ++x)
    b.call(hog, x);
  auto many = other.call<std::vector<int>(std::vector<int>)>("root", "many",
                                                             std::vector<int>{11, 12, 13, 14});
  b.world.run_for(0s);
  CHECK(outcome(std::move(many)).code() == ErrorCode::overloaded);
  CHECK(b.batcher.statistics().queued == 4);
  b.answer(0);
  b.answer(1);
}

TEST_CASE("a call that waits or is held fails when max_size becomes smaller than it") {
  HeldBatching b({.max_size = 3, .max_queue = 4, .on_full = OnFull::wait});
  b.add(0);
  b.world.run_for(0s);
  auto waits = b.batcher.many()({1, 2, 3});
  auto held = b.batcher.many()({4, 5, 6});
  b.add(7);
  b.batcher.set_options({.max_size = 2, .max_queue = 4, .on_full = OnFull::wait});
  for (auto* many : {&waits, &held}) {
    const auto refused = outcome(std::move(*many));
    CHECK(refused.code() == ErrorCode::invalid_argument);
    CHECK_THAT(refused.message(),
               Catch::Contains("BatchOptions::max_size was changed to 2 while the call waited"));
  }
  CHECK(b.batcher.statistics().invalid == 6);
  b.answer(0);
  REQUIRE(b.running.size() == 2);
  b.answer(1);
  CHECK(b.batches == Batches{{0}, {7}});
}

}  // namespace batch_fairness_test
}  // namespace batchrpc
