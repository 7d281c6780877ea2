#include <catch2/catch.hpp>
#include <optional>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// What changes while rows wait or a batch is about to start: room, settings, the mutex, the end.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::Batches;
using test::HeldBatching;
using test::outcome;

struct Sum {
  void begin() { sum = 0; }
  void accumulate(int x) {
    if (world != nullptr) world->loop->advance(10ms);
    if (x < 0) throw std::domain_error("negative");
    sum += x;
  }
  int finish() { return sum; }
  test::VirtualWorld* world = nullptr;
  int sum = 0;
};

/// A reducer on a node in virtual time; a slow one takes 10 ms for a row, and its loop waits.
struct Summing {
  explicit Summing(BatchOptions options, bool slow = false)
      : batcher(std::move(options), reduce(Sum{.world = slow ? &world : nullptr})) {
    node.expose("sum", batcher);
  }
  test::VirtualWorld world;
  Node node = world.root();
  Batcher<int(int)> batcher;
};

TEST_CASE("a flush during a pause does nothing, also when the pause is over") {
  HeldBatching b({.max_wait = 1h});
  b.batcher.pause();
  b.add(1);
  b.batcher.flush();
  b.batcher.resume();
  b.world.run_for(1min);
  CHECK(b.batches.empty());
  b.batcher.flush();
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
  b.answer(0);
}

}  // namespace
}  // namespace batchrpc
