#include <catch2/catch.hpp>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// Whose call a row is, and whose it is not.
namespace batchrpc {
namespace batch_callers_test {

using namespace std::chrono_literals;
using test::doubled;
using test::HeldBatching;
using test::outcome;

TEST_CASE("a batcher answers callers of a node in another group") {
  test::VirtualWorld one;
  test::VirtualWorld two;
  const Node first = one.root();
  const Node second = two.root();
  const Node namesake = one.join("peer");
  const Node peer = two.join("peer");
  const Batcher<int(int)> batcher({}, doubled);
  first.expose("f", batcher);
  second.expose("f", batcher);
  second.expose("through", [&](int x) { return batcher(x); });
  for (const char* const function : {"f", "through"}) {
    CAPTURE(function);
    auto row = peer.call<int(int)>("root", function, 4);
    two.run_for(1s);
    one.run_for(1s);
    two.run_for(1s);
    REQUIRE(row.ready());
    CHECK(outcome(std::move(row)).message() == "no error");
  }
}

TEST_CASE("callbacks of rows that a peer's call displaces are no part of that call") {
  std::vector<std::shared_ptr<const PeerIdentity>> callers;
  bool tries_again = true;
  HeldBatching b({.max_size = 1, .max_queue = 4});
  const Node peer = b.world.join("peer");
  const Batcher<int(int)> other({}, [&](std::vector<int> xs, const BatchInfo& info) {
    callers.push_back(info.calls[0].caller);
    return xs;
  });
  b.node.expose("other", other);
  for (int x = 0; x < 5; ++x) {
    b.batcher(x).then([&](const Result<int>& row) {
      if (!row && tries_again) (void)other(7);
    });
    b.world.run_for(0s);
  }
  b.call(peer, 9);
  b.world.run_for(0s);
  REQUIRE(callers.size() == 1);
  CHECK(callers[0] == nullptr);
  tries_again = false;
}

TEST_CASE("a row that was taken back before it came does not run") {
  int runs = 0;
  const Batcher<int(int)> batcher({.short_handler = true}, [&](std::vector<int> xs) {
    ++runs;
    return xs;
  });
  std::stop_source stop;
  stop.request_stop();
  const auto row = outcome(batcher.with({.stop = stop.get_token()})(1));
  CHECK(row.code() == ErrorCode::cancelled);
  const auto rows = outcome(batcher.many().with({.stop = stop.get_token()})({1, 2}));
  CHECK(rows.code() == ErrorCode::cancelled);
  CHECK(runs == 0);
  CHECK(batcher.statistics().rows == 3);
  CHECK(batcher.statistics().cancelled == 3);
}

}  // namespace batch_callers_test
}  // namespace batchrpc
