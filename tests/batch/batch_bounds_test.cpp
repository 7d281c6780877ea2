#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// How much may wait, who finds room when there is little, and which rows never run.
namespace batchrpc {
namespace batch_bounds_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::HeldBatching;
using test::outcome;

TEST_CASE("a row beyond max_queue_bytes is refused, and finds room when others have gone") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::vector<Promise<std::vector<int>>> running;
  const Batcher<int(std::string)> batcher(
      {.max_queue_bytes = 10'000}, [&](auto) { return running.emplace_back().get_future(); });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(node));
  auto runs = batcher("");
  world.run_for(0s);
  auto waits = batcher(std::string(6'000, 'a'));
  const auto refused = outcome(batcher(std::string(6'000, 'b')));
  CHECK(refused.code() == ErrorCode::overloaded);
  CHECK_THAT(refused.message(), Catch::Contains("BatchOptions::max_queue_bytes"));
  auto small = batcher(std::string(1'000, 'c'));
  CHECK(batcher.statistics().queued_bytes > 7'000);
  const auto too_large = outcome(batcher(std::string(20'000, 'd')));
  CHECK(too_large.code() == ErrorCode::invalid_argument);
  running[0].set_value({1});
  world.run_for(0s);
  CHECK(batcher.statistics().queued_bytes == 0);
  auto fits = batcher(std::string(6'000, 'e'));
  batcher.close();
}

TEST_CASE("held rows come in when there is room, the callers in turn, and no reply is lost") {
  HeldBatching b({.max_size = 2, .max_queue = 4, .on_full = OnFull::wait});
  const Node first = b.world.join("first");
  const Node second = b.world.join("second");
  b.add(0);
  b.world.run_for(0s);
  for (const int x : {1, 2, 3, 4})
    b.call(first, x);
  for (const int x : {11, 12})
    b.call(first, x);
  for (const int x : {21, 22})
    b.call(second, x);
  CHECK(b.batcher.statistics().queued == 4);
  CHECK(b.batcher.statistics().held == 4);
  for (std::size_t i = 0; i < 5; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1, 2}, {3, 4}, {11, 21}, {12, 22}});
  for (auto& row : b.rows)
    CHECK(row.ready());
}

TEST_CASE("as many rows as max_queue are held, and no more") {
  HeldBatching b({.max_size = 1, .max_queue = 2, .on_full = OnFull::wait});
  b.add(0);
  b.world.run_for(0s);
  for (int x = 1; x <= 4; ++x)
    b.add(x);
  const auto refused = outcome(b.batcher(5));
  CHECK(refused.code() == ErrorCode::overloaded);
  CHECK_THAT(refused.message(), Catch::Contains("as many of held callers"));
  for (std::size_t i = 0; i < 5; ++i)
    b.answer(i);
  CHECK(b.rows[4].get() == 8);
}

TEST_CASE("who is refused is told to come again when one of the batches that run is over") {
  HeldBatching b({.max_size = 1, .max_queue = 1, .parallelism = 2});
  b.add(0);
  b.world.run_for(20ms);
  b.answer(0);
  b.add(1);
  b.world.run_for(0s);
  b.add(2);
  b.world.run_for(0s);
  b.add(3);
  const auto refused = outcome(b.batcher(4));
  REQUIRE_FALSE(refused);
  try {
    std::rethrow_exception(refused.error());
  } catch (const Overloaded& error) {
    CHECK(error.retry_after() == 10ms);
  }
  for (std::size_t i = 1; i < 4; ++i)
    b.answer(i);
}

TEST_CASE("a caller that fills the queue makes way for others, up to its share") {
  HeldBatching b({.max_size = 1, .max_queue = 6});
  const Node hog = b.world.join("hog");
  const Node other = b.world.join("other");
  b.add(0);
  b.world.run_for(0s);
  for (int x = 1; x <= 6; ++x)
    b.call(hog, x);
  for (int x = 11; x <= 15; ++x)
    b.call(other, x);
  for (std::size_t i = 0; i < 7; ++i)
    b.answer(i);
  CHECK(b.batches == Batches{{0}, {1}, {2}, {3}, {11}, {12}, {13}});
  const auto evicted = outcome(std::move(b.rows[6]));
  CHECK(evicted.code() == ErrorCode::overloaded);
  CHECK_FALSE(test::may_have_run(evicted.error()));
  CHECK_THAT(evicted.message(), Catch::Contains("another caller needed room"));
  CHECK(outcome(std::move(b.rows[10])).code() == ErrorCode::overloaded);
  CHECK(b.batcher.statistics().rejected == 5);
}

TEST_CASE("a row whose deadline passes while it waits fails then, and never runs") {
  HeldBatching b({});
  b.add(0);
  b.world.run_for(0s);
  auto expires = b.batcher.with({.timeout = 5ms})(1);
  auto stays = b.batcher.with({.timeout = 1h})(2);
  b.world.run_for(4999us);
  CHECK_FALSE(expires.ready());
  b.world.run_for(1us);
  REQUIRE(expires.ready());
  const auto expired = outcome(std::move(expires));
  CHECK(expired.code() == ErrorCode::timed_out);
  CHECK_FALSE(test::may_have_run(expired.error()));
  b.answer(0);
  CHECK(b.batches == Batches{{0}, {2}});
  b.answer(1);
  CHECK(stays.get() == 4);
  CHECK(b.batcher.statistics().expired == 1);
}

TEST_CASE("a peer's row whose deadline has passed never runs") {
  HeldBatching b({});
  const Node peer = b.world.join("peer");
  b.add(0);
  b.world.run_for(0s);
  auto call = peer.peer("root").with({.timeout = 50ms}).call<int(int)>("double", 1);
  b.world.run_for(1s);
  CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
  CHECK(b.batcher.statistics().expired == 1);
  b.answer(0);
  CHECK(b.batches == Batches{{0}});
}

TEST_CASE("rows that expired do not fill the queue") {
  HeldBatching b({.max_size = 1, .max_queue = 2});
  b.add(0);
  b.world.run_for(0s);
  auto a = b.batcher.with({.timeout = 1ms})(1);
  auto c = b.batcher.with({.timeout = 1ms})(2);
  CHECK(outcome(b.batcher(3)).code() == ErrorCode::overloaded);
  b.world.loop->run_for(1ms);
  auto fits = b.batcher(4);
  b.answer(0);
  CHECK(b.batches == Batches{{0}, {4}});
}

TEST_CASE("a row that is answered within another call has that call's caller and deadline") {
  test::VirtualWorld world;
  const Node root = world.root();
  BatchInfo seen;
  const Batcher<int(int)> batcher({}, [&](std::vector<int> xs, const BatchInfo& info) {
    seen = info;
    return xs;
  });
  detail::HostedAccess::exposed_on(batcher, detail::NodeAccess::host(root));
  root.expose("update", [&](int x) { return batcher(x); });
  const Node trainer = world.join("trainer");
  CHECK(trainer.peer("root").with({.timeout = 2s}).call<int(int)>("update", 7).get() == 7);
  REQUIRE(seen.calls.size() == 1);
  REQUIRE(seen.calls[0].caller);
  CHECK(seen.calls[0].caller->name == "trainer");
  CHECK(seen.calls[0].deadline);
}

TEST_CASE("a row that its caller takes back never runs") {
  HeldBatching b({.min_size = 1, .max_queue = 64});
  b.add(0);
  b.world.run_for(0s);
  std::stop_source stop;
  auto taken_back = b.batcher.with({.stop = stop.get_token()})(1);
  auto many = b.batcher.many().with({.stop = stop.get_token()})({2, 3});
  b.add(4);
  CHECK(b.batcher.statistics().queued == 4);
  stop.request_stop();
  REQUIRE(taken_back.ready());
  CHECK(outcome(std::move(taken_back)).code() == ErrorCode::cancelled);
  CHECK(outcome(std::move(many)).code() == ErrorCode::cancelled);
  CHECK(b.batcher.statistics().queued == 1);
  CHECK(b.batcher.statistics().cancelled == 3);
  b.answer(0);
  CHECK(b.batches == Batches{{0}, {4}});
  // One that is taken back before it comes does not come.
  CHECK(outcome(b.batcher.with({.stop = stop.get_token()})(5)).code() == ErrorCode::cancelled);
}

TEST_CASE("a row that has started is not taken back any more") {
  HeldBatching b({});
  std::stop_source stop;
  auto row = b.batcher.with({.stop = stop.get_token()})(1);
  b.world.run_for(0s);
  stop.request_stop();
  CHECK_FALSE(row.ready());
  b.answer(0);
  CHECK(row.get() == 2);
  stop.request_stop();
}

TEST_CASE("rows of a peer that leaves, or is replaced by another of its name, never run") {
  HeldBatching b({.on_full = OnFull::wait});
  {
    const Node peer = b.world.join("peer");
    b.add(0);
    b.world.run_for(0s);
    b.call(peer, 1);
    b.add(2);
    b.world.kill("peer");
    b.world.network->rejoin("peer");
    const Node again = b.world.join("peer");
    b.call(again, 3);
    b.answer(0);
    CHECK(b.batches == Batches{{0}, {2, 3}});
    CHECK(b.batcher.statistics().left == 1);
    b.answer(1);
  }
}

TEST_CASE("max_wait counts from a row's arrival also where it was held back") {
  Batching b({.max_size = 3, .max_wait = 100ms, .max_queue = 3, .on_full = OnFull::wait});
  const Node first = b.world.join("first");
  const Node second = b.world.join("second");
  std::vector<Future<int>> rows;
  const auto call = [&](const Node& node, int x) {
    rows.push_back(node.call<int(int)>("root", "double", x));
    b.world.run_for(0s);
  };
  b.batcher.pause();
  b.add({1, 2});
  auto expires = b.batcher.with({.timeout = 60ms})(3);
  call(first, 11);
  call(first, 12);
  const Duration start = b.world.time();
  b.world.run_for(50ms);
  call(second, 21);
  b.world.run_for(10ms);  // 3 expires, 11 comes in, and next it is the other one's turn
  b.batcher.resume();
  b.world.run_for(0s);
  REQUIRE(b.batches == Batches{{1, 2, 11}});
  b.world.run_for(1s);
  REQUIRE(b.batches == Batches{{1, 2, 11}, {21, 12}});
  CHECK(b.times[1] == start + 100ms);
  CHECK(outcome(std::move(expires)).code() == ErrorCode::timed_out);
}

}  // namespace batch_bounds_test
}  // namespace batchrpc
