#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// Rows whose remote calls are cancelled.
namespace batchrpc {
namespace batch_cancelling_test {

using namespace std::chrono_literals;
using test::Batches;
using test::HeldBatching;
using test::outcome;

TEST_CASE("promise 4: a waiting row whose call is cancelled is taken out, and never runs") {
  HeldBatching h({.max_wait = 1h, .min_size = 3});
  const Node peer = h.world.join("peer");
  const auto& first = h.call(peer, 1);
  h.call(peer, 2);
  CHECK(first.cancel());
  h.world.run_for(0s);
  CHECK(h.batcher.statistics().cancelled == 1);
  h.call(peer, 3);
  CHECK(h.batches.empty());
  h.call(peer, 4);
  CHECK(h.batches == Batches{{2, 3, 4}});
  h.answer(0);
  CHECK(h.rows[3].get() == 8);
  CHECK(outcome(std::move(h.rows[0])).code() == ErrorCode::cancelled);
}

TEST_CASE("promise 4: a row that runs goes on when its call is cancelled, for nobody") {
  HeldBatching h({.max_wait = 1h, .min_size = 2});
  const Node peer = h.world.join("peer");
  const auto& first = h.call(peer, 1);
  h.call(peer, 2);
  REQUIRE(h.batches.size() == 1);
  CHECK(first.cancel());
  h.world.run_for(0s);
  h.answer(0);
  CHECK(h.rows[1].get() == 4);
  CHECK(h.batcher.statistics().cancelled == 0);
}

TEST_CASE("promise 4: a row whose call is cancelled before it has come never comes in") {
  HeldBatching h({.max_wait = 1h, .min_size = 2});
  const Node peer = h.world.join("peer");
  h.call(peer, 1);
  auto call = peer.call<int(int)>("root", "double", 2);
  CHECK(call.cancel());
  h.world.run_for(1s);
  CHECK(h.batches.empty());
  h.call(peer, 3);
  CHECK(h.batches == Batches{{1, 3}});
}

TEST_CASE("promise 4: a row that a handler calls here is taken out when the handler's call is") {
  HeldBatching h({.max_wait = 1h, .min_size = 2});
  const Node peer = h.world.join("peer");
  h.node.expose("twice", [&](int x) -> Future<int> { co_return co_await h.batcher(x) * 2; });
  auto call = peer.call<int(int)>("root", "twice", 1);
  h.world.run_for(0s);
  CHECK(call.cancel());
  h.world.run_for(0s);
  CHECK(h.batcher.statistics().cancelled == 1);
  h.add(2);
  h.world.run_for(0s);
  CHECK(h.batches.empty());
  h.add(3);
  h.world.run_for(0s);
  CHECK(h.batches == Batches{{2, 3}});
}

}  // namespace batch_cancelling_test
}  // namespace batchrpc
