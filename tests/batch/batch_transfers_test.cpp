#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// Large calls that are announced: which may come, and which wait at their senders.
namespace batchrpc {
namespace batch_transfers_test {

using namespace std::chrono_literals;

struct Gate : detail::TransferGate {
  explicit Gate(std::size_t size) : size_(size) {}
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return size_; }
  [[nodiscard]] std::uint64_t received() const noexcept override { return come; }
  void open() noexcept override { opened = true; }
  bool opened = false;
  std::uint64_t come = 0;

 private:
  const std::size_t size_;
};

struct SomeCall : detail::BatchCall {
  void fail(const std::exception_ptr& /*error*/, bool /*began*/) noexcept override {}
};

std::shared_ptr<const PeerIdentity> peer(std::string name) {
  return std::make_shared<const PeerIdentity>(PeerIdentity{.name = std::move(name)});
}

/// The part of a batcher that knows no types, whose batches run until they are told to end.
struct Core {
  explicit Core(BatchOptions options)
      : core(detail::BatchCore::make(std::move(options), {.run = [this](detail::TakenBatch) {
                                       return running.emplace_back().get_future();
                                     }})) {
    detail::HostedAccess::exposed_on(*core, detail::NodeAccess::host(node));
  }
  // The batches that are due run and end: a task of theirs keeps the loop, which keeps the task.
  ~Core() {
    world.run_for(0s);
    for (auto& batch : running) {
      if (batch.pending()) batch.set_value({});
    }
    world.run_for(0s);
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  bool add(std::size_t bytes, std::shared_ptr<void> transfer = nullptr, std::size_t rows = 1) {
    std::unique_ptr<detail::BatchCall> call = std::make_unique<SomeCall>();
    call->bytes = bytes;
    call->rows = rows;
    call->transfer = std::move(transfer);
    return core->add(call) == nullptr;
  }
  /// Announces a call; what keeps its place is in `coming`.
  std::shared_ptr<Gate> announce(std::size_t bytes,
                                 const std::shared_ptr<const PeerIdentity>& caller = nullptr) {
    const CallContext context(caller, std::nullopt);
    std::optional<detail::ContextScope> scope;
    if (caller) scope.emplace(context);
    auto gate = std::make_shared<Gate>(bytes);
    bool held = false;
    coming.push_back(core->expect_transfer(bytes, gate, held));
    if (!held) gate->opened = true;
    return gate;
  }

  std::deque<Promise<detail::BatchOutcome>> running;
  test::VirtualWorld world;
  Node node = world.root();
  std::shared_ptr<detail::BatchCore> core;
  std::vector<std::shared_ptr<void>> coming;
};

TEST_CASE("calls that would go beyond max_queue_bytes wait at their senders, in their order") {
  Core c({.max_queue_bytes = 1000});
  const auto first = c.announce(600);
  const auto second = c.announce(600);
  const auto third = c.announce(10);  // it would fit, but others are before it
  CHECK(first->opened);
  CHECK_FALSE(second->opened);
  CHECK_FALSE(third->opened);
  c.coming[0] = nullptr;  // broken off
  CHECK(second->opened);
  CHECK(third->opened);
}

TEST_CASE("a call that was let in finds its place, and others none when it has come") {
  Core c({.max_size = 1, .max_queue_bytes = 1000});
  CHECK(c.announce(500)->opened);
  CHECK(c.announce(500)->opened);
  CHECK(c.add(510, std::move(c.coming[0])));  // its message takes some, too
  CHECK(c.add(510, std::move(c.coming[1])));
  CHECK_FALSE(c.add(1));
  c.world.run_for(0s);
  REQUIRE(c.running.size() == 1);
  c.running[0].set_value({});
  c.world.run_for(0s);
  CHECK(c.core->statistics().queued_bytes == 0);
  CHECK(c.add(1000));
  for (std::size_t i = 1; i < 3; ++i) {
    REQUIRE(c.running.size() == i + 1);
    c.running[i].set_value({});
    c.world.run_for(0s);
  }
}

TEST_CASE("a call that comes though it was to wait has no place of its own") {
  Core c({.max_queue_bytes = 1000});
  CHECK(c.announce(900)->opened);
  CHECK_FALSE(c.announce(900)->opened);
  CHECK(c.add(900, std::move(c.coming[0])));
  CHECK_FALSE(c.add(910, std::move(c.coming[1])));
  CHECK(c.announce(100)->opened);  // it is forgotten
}

TEST_CASE("a place in one batcher is none in another") {
  Core c({.max_queue_bytes = 1000});
  Core other({.max_queue_bytes = 100});
  CHECK(c.announce(900)->opened);
  CHECK(c.announce(90)->opened);
  CHECK(other.announce(90)->opened);
  CHECK(other.add(90, std::move(other.coming[0])));
  CHECK_FALSE(other.add(90, std::move(c.coming[1])));
  other.coming.clear();
  c.coming.clear();
  CHECK(c.announce(1000)->opened);
}

TEST_CASE("one that is larger than the whole queue comes alone") {
  Core c({.max_queue_bytes = 1000});
  CHECK(c.announce(5000)->opened);
  CHECK_FALSE(c.announce(10)->opened);
}

TEST_CASE(
    "a call that waits at its sender comes when a batch has taken the queue, while that runs") {
  Core c({.max_size = 1, .max_queue_bytes = 1000});
  CHECK(c.add(900));
  const auto gate = c.announce(500);
  CHECK_FALSE(gate->opened);
  c.world.run_for(0s);
  CHECK(c.running.size() == 1);
  CHECK(gate->opened);
  c.running[0].set_value({});
}

TEST_CASE("a call that waits and breaks off is forgotten") {
  Core c({.max_queue_bytes = 1000});
  const auto first = c.announce(900);
  const auto second = c.announce(900);
  const auto third = c.announce(900);
  c.coming[1] = nullptr;
  c.coming[0] = nullptr;
  CHECK_FALSE(second->opened);
  CHECK(third->opened);
}

TEST_CASE("a batcher that is closed lets come what it will refuse, within its bounds") {
  Core c({.max_queue_bytes = 1000});
  const auto first = c.announce(900);
  const auto second = c.announce(900);
  const auto third = c.announce(900);
  (void)c.core->close(BatchClose::fail);
  CHECK_FALSE(second->opened);
  CHECK_FALSE(c.add(900, std::move(c.coming[0])));
  CHECK(second->opened);
  CHECK_FALSE(third->opened);
  CHECK_FALSE(c.add(900, std::move(c.coming[1])));
  CHECK(third->opened);
}

TEST_CASE("calls that wait at their senders come when their batcher is no more") {
  Core c({.max_queue_bytes = 1000});
  const auto first = c.announce(900);
  const auto second = c.announce(900);
  c.core = nullptr;
  CHECK(second->opened);
  c.coming.clear();
}

TEST_CASE("callers whose calls wait at their senders come in turn") {
  Core c({.max_queue_bytes = 1000});
  const auto running = c.announce(900);
  const auto hog = peer("hog");
  const auto hogs_first = c.announce(900, hog);
  const auto hogs_second = c.announce(900, hog);
  const auto others = c.announce(900, peer("other"));
  c.coming[0] = nullptr;
  CHECK(hogs_first->opened);
  c.coming[1] = nullptr;
  CHECK(others->opened);
  CHECK_FALSE(hogs_second->opened);
  c.coming[3] = nullptr;
  CHECK(hogs_second->opened);
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_CASE("a row that only is announced refuses nobody's rows, and takes a fair share at most") {
  Core c({.max_size = 1, .max_queue_bytes = 1000});
  const auto mallory = peer("mallory");
  const auto bob = peer("bob");
  CHECK(c.announce(1000, mallory)->opened);
  CHECK(c.add(100));
  CHECK(c.announce(400, bob)->opened);
  CHECK_FALSE(c.announce(100, bob)->opened);  // he has 400, and the row from here 100
  CHECK_FALSE(c.announce(1000, mallory)->opened);
  CHECK(c.announce(60, peer("carol"))->opened);  // beside 100, and 333 each of theirs
  c.coming.clear();
  c.core = nullptr;
}

TEST_CASE("a caller whose next row waits for its own earlier one holds up no others") {
  Core c({.max_queue_bytes = 1000});
  const auto mallory = peer("mallory");
  CHECK(c.announce(1000, mallory)->opened);
  const auto next = c.announce(1000, mallory);
  for (int i = 0; i < 100; ++i) {
    CHECK(c.announce(400, peer("bob"))->opened);
    c.coming.pop_back();
  }
  CHECK_FALSE(next->opened);
}

TEST_CASE("nobody waits for a row of which nothing has come for as long as kills a peer") {
  Core c({.max_queue_bytes = 10 * kMiB});
  const auto mallory = peer("mallory");
  const auto stalls = c.announce(10 * kMiB, mallory);
  const auto waits = c.announce(6 * kMiB, peer("bob"));
  CHECK(stalls->opened);
  c.world.run_for(4s);
  SECTION("nothing comes") {
    CHECK_FALSE(waits->opened);
    c.world.run_for(1s);
    CHECK(waits->opened);
    CHECK_FALSE(c.announce(kMiB, mallory)->opened);  // hers count for herself
    CHECK(c.add(6 * kMiB, std::move(c.coming[1])));
    CHECK_FALSE(c.add(10 * kMiB, std::move(c.coming[0])));  // she has lost her place
  }
  SECTION("it comes slowly") {
    for (int i = 0; i < 10; ++i) {
      stalls->come += 100 * 1024;
      c.world.run_for(5s);
      CHECK_FALSE(waits->opened);
    }
    CHECK(c.add(10 * kMiB, std::move(c.coming[0])));
  }
  c.core = nullptr;
}

TEST_CASE("a full batch does not wait for a row that has stalled") {
  Core c({.min_size = 3, .max_queue_bytes = 10 * kMiB});
  CHECK(c.add(4 * kMiB));
  const auto stalls = c.announce(6 * kMiB, peer("mallory"));
  const auto waits = c.announce(7 * kMiB, peer("bob"));
  CHECK(stalls->opened);
  c.world.run_for(4s);
  CHECK(c.running.empty());
  c.world.run_for(1s);
  REQUIRE(c.running.size() == 1);
  CHECK(waits->opened);
  c.running[0].set_value({});
}

TEST_CASE("a batch does not wait for rows that it leaves no room for") {
  Core c({.min_size = 3, .max_queue_bytes = 1000});
  for (int i = 0; i < 3; ++i)
    (void)c.announce(400);
  CHECK(c.add(400, std::move(c.coming[0])));
  c.world.run_for(1s);
  CHECK(c.running.empty());  // another one is coming in
  CHECK(c.add(400, std::move(c.coming[1])));
  c.world.run_for(0s);
  REQUIRE(c.running.size() == 1);
  CHECK(c.core->statistics().reasons.at(static_cast<std::size_t>(BatchReason::full)) == 1);
  CHECK(c.add(400, std::move(c.coming[2])));
  c.running[0].set_value({});
  c.world.run_for(1s);
  CHECK(c.running.size() == 1);
  CHECK(c.core->statistics().queued == 1);
}

TEST_CASE("a batch does not wait for small rows that it leaves no room for") {
  for (const OnFull on_full : {OnFull::reject, OnFull::wait}) {
    Core c({.min_size = 3, .max_queue_bytes = 1000, .on_full = on_full});
    CHECK(c.add(400));
    CHECK(c.add(400));
    c.world.run_for(1h);
    CHECK(c.running.empty());
    CHECK_FALSE(c.add(400));
    c.world.run_for(0s);
    REQUIRE(c.running.size() == 1);
    c.running[0].set_value({});
    c.world.run_for(0s);
  }
}

TEST_CASE("a larger queue lets more come") {
  Core c({.max_queue_bytes = 1000});
  const auto first = c.announce(900);
  const auto second = c.announce(900);
  c.core->set_options({.max_queue_bytes = 2000});
  CHECK(second->opened);
}

struct CountRows {
  void accumulate(const std::vector<Bytes>& /*row*/) { ++*rows; }
  int finish() { return *rows; }
  std::shared_ptr<int> rows = std::make_shared<int>(0);
};

TEST_CASE("of a reducer's callers two send at once, whatever their rows are made of") {
  for (const bool many : {false, true}) {
    test::VirtualWorld world;
    const Node node = world.root();
    const Batcher<int(std::vector<Bytes>)> batcher({.min_size = 5}, reduce(CountRows{}));
    node.expose("one", batcher);
    node.expose("many", batcher.many());
    batcher.pause();
    std::vector<Node> peers;
    std::vector<Future<int>> answers;
    std::vector<Future<std::vector<int>>> many_answers;
    for (int i = 0; i < 5; ++i) {
      peers.push_back(world.join("peer" + std::to_string(i)));
      std::vector<Bytes> row{Bytes::allocate(std::size_t{16} << 20)};
      if (many) {
        std::vector<std::vector<Bytes>> rows{std::move(row)};
        many_answers.push_back(peers.back().call<std::vector<int>(std::vector<std::vector<Bytes>>)>(
            "root", "many", std::move(rows)));
      } else {
        answers.push_back(
            peers.back().call<int(std::vector<Bytes>)>("root", "one", std::move(row)));
      }
    }
    world.run_for(2s);
    CHECK(batcher.statistics().queued == 2);
    batcher.resume();
    for (auto& answer : answers)
      CHECK(answer.get() == 5);
    for (auto& answer : many_answers)
      CHECK(answer.get() == std::vector<int>{5});
  }
}

TEST_CASE("who waits for room is not forgotten when another call leaves some, or is refused") {
  Core c({.max_size = 2, .min_size = 2, .max_queue_bytes = 1000});
  CHECK(c.add(500));
  CHECK(c.announce(400)->opened);
  const auto waits = c.announce(600);
  CHECK_FALSE(waits->opened);
  SECTION("it breaks off") { c.coming[0] = nullptr; }
  SECTION("it is larger than a batch") { CHECK_FALSE(c.add(410, c.coming[0], 3)); }
  c.coming[0] = nullptr;
  c.world.run_for(1h);
  CHECK(waits->opened);
  CHECK(c.running.size() == 1);
  for (auto& promise : c.running)
    promise.set_value({});
}

}  // namespace batch_transfers_test
}  // namespace batchrpc
