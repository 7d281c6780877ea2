#include <catch2/catch.hpp>

#include "largest_allocation.hpp"
#include "node/announced_calls.hpp"
#include "node/virtual_world.hpp"

// Calls whose senders wait until they may send the payloads.

namespace batchrpc {
namespace held_calls_test {

using namespace std::chrono_literals;
using test::AnnouncedCalls;
using test::outcome;
using test::scribbled;
using test::Swallow;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLarge = 16 * kMiB;

/// Node b holds the calls of "swallow".
struct Pair : test::NodePair {
  std::shared_ptr<AnnouncedCalls> announced;

  Pair() {
    const test::Swallower swallower;
    announced = swallower.announced;
    announced->holds = true;
    b.expose("swallow", swallower, {.short_handler = true});
    b.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    b.expose("twice", [](int x) { return 2 * x; });
  }
  [[nodiscard]] Future<std::size_t> swallow(int number, Bytes bytes,
                                            CallOptions options = {}) const {
    return a.peer("b").with(options).call<Swallow>("swallow", number, std::move(bytes));
  }
  void next_calls_work() const {
    CHECK(a.call<int(int)>("b", "twice", 4).get() == 8);
    CHECK(a.call<std::size_t(Bytes)>("b", "size", Bytes::allocate(kMiB)).get() == kMiB);
  }
};

/// Bytes, and whether they are still kept anywhere.
std::pair<Bytes, std::weak_ptr<const void>> watched(std::size_t size) {
  auto memory = std::make_shared<std::vector<std::byte>>(size);
  const std::span<const std::byte> span(*memory);
  Bytes bytes(std::move(memory), span);
  std::weak_ptr<const void> watch = bytes.owner();
  return {std::move(bytes), std::move(watch)};
}

TEST_CASE("a held call waits, and stops nothing else on its connection") {
  Pair pair;
  const Bytes sent = scribbled(kLarge, 1);
  auto held = pair.swallow(1, sent, {.timeout = Duration::max()});
  pair.next_calls_work();
  pair.world.run_for(60s);  // nor do the nodes take each other for dead
  pair.next_calls_work();
  CHECK_FALSE(held.ready());
  AnnouncedCalls::Call& call = pair.announced->calls.at(1);
  CHECK(call.asked == 0);
  call.gate->open();
  CHECK(std::move(held).get() == kLarge);
  CHECK(call.asked == 1);
  CHECK(call.argument.data() == call.memory.data());
  CHECK(call.argument == sent);
  CHECK(call.kept.expired());
  call.gate->open();
  pair.next_calls_work();
}

TEST_CASE("several held calls go on in the order in which they may") {
  Pair pair;
  std::vector<Future<std::size_t>> held;
  for (int i = 0; i < 5; ++i)
    held.push_back(pair.swallow(i, scribbled(kMiB * 2, static_cast<std::uint32_t>(i))));
  pair.world.run_for(1s);
  for (const int i : {3, 1, 0, 4, 2}) {
    CHECK_FALSE(held[static_cast<std::size_t>(i)].ready());
    pair.announced->calls.at(i).gate->open();
    CHECK(std::move(held[static_cast<std::size_t>(i)]).get() == 2 * kMiB);
    CHECK(pair.announced->calls.at(i).argument ==
          scribbled(kMiB * 2, static_cast<std::uint32_t>(i)));
  }
}

/// Connected to `b`.
std::vector<Node> five_senders(test::VirtualWorld& world) {
  std::vector<Node> senders;
  for (int i = 0; i < 5; ++i)
    senders.push_back(world.join("sender" + std::to_string(i)));
  for (const Node& sender : senders)
    (void)sender.call<int(int)>("b", "twice", 1).get();
  return senders;
}

TEST_CASE("held calls take next to no memory where they are to go") {
  Pair pair;
  const std::vector<Node> senders = five_senders(pair.world);
  const Bytes gradients = scribbled(kLarge, 5);
  const std::size_t before = test::allocated_bytes();
  std::vector<Future<std::size_t>> held;
  for (int i = 0; i < 5; ++i) {
    held.push_back(
        senders[static_cast<std::size_t>(i)].call<Swallow>("b", "swallow", i, gradients));
  }
  pair.world.run_for(1s);
  CHECK(test::allocated_bytes() < before + 5 * kMiB);
  for (int i = 0; i < 5; ++i) {
    AnnouncedCalls::Call& call = pair.announced->calls.at(i);
    call.gate->open();
    CHECK(std::move(held[static_cast<std::size_t>(i)]).get() == kLarge);
    CHECK(call.argument == gradients);
    CHECK(test::allocated_bytes() < before + kLarge + 5 * kMiB);
    call.argument = call.memory = {};
  }
}

TEST_CASE("of a held call no more than 1 MiB comes, however much is on its way") {
  Pair pair;
  pair.world.network->set_link({.latency = 50ms, .capacity = 64 * kMiB});
  const std::vector<Node> senders = five_senders(pair.world);
  const Bytes gradients = scribbled(kLarge, 5);
  const std::size_t before = test::allocated_bytes();
  std::vector<Future<std::size_t>> held;
  for (std::size_t i = 0; i < 5; ++i)
    held.push_back(senders[i].call<Swallow>("b", "swallow", static_cast<int>(i), gradients));
  pair.world.run_for(1s);
  CHECK(test::allocated_bytes() < before + 5 * (kMiB + 100 * 1024));
  for (std::size_t i = 0; i < 5; ++i) {
    pair.announced->calls.at(static_cast<int>(i)).gate->open();
    CHECK(std::move(held[i]).get() == kLarge);
  }
}

TEST_CASE("a call whose gate is opened before it was held does not wait") {
  Pair pair;
  pair.announced->on_announce = [&](int number) { pair.announced->calls.at(number).gate->open(); };
  CHECK(pair.swallow(1, scribbled(kLarge, 1)).get() == kLarge);
  const AnnouncedCalls::Call& call = pair.announced->calls.at(1);
  CHECK(call.argument.data() == call.memory.data());
}

TEST_CASE("what has come as a whole before its sender knew that it was to wait runs") {
  Pair pair;
  CHECK(pair.swallow(1, scribbled(20'000, 1)).get() == 20'000);
  AnnouncedCalls::Call& call = pair.announced->calls.at(1);
  CHECK(call.asked == 1);
  CHECK(call.argument.data() == call.memory.data());
  CHECK(call.argument == scribbled(20'000, 1));
  call.gate->open();
  pair.next_calls_work();
}

TEST_CASE("a held call that times out surely never runs, and nobody keeps anything of it") {
  Pair pair;
  auto [bytes, watch] = watched(kLarge);
  auto held = pair.swallow(1, std::move(bytes), {.timeout = 2s});
  pair.world.run_for(1s);
  CHECK_FALSE(watch.expired());
  CHECK_FALSE(pair.announced->let_go(1));
  pair.world.run_for(2s);
  const auto result = outcome(std::move(held));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK(watch.expired());
  CHECK(pair.announced->let_go(1));
  pair.announced->calls.at(1).gate->open();
  pair.world.run_for(1s);
  CHECK_FALSE(pair.announced->calls.at(1).ran);
  pair.next_calls_work();
}

TEST_CASE("a call that times out half sent surely never runs, and its rest is not sent") {
  Pair pair;
  pair.announced->holds = false;
  pair.world.network->set_link({.latency = 100ms});
  const Node c = pair.world.join("c");
  auto [bytes, watch] = watched(64 * kMiB);
  auto call = c.peer("b").with({.timeout = 2s}).call<Swallow>("swallow", 1, bytes);
  bytes = {};
  pair.world.run_for(1s);
  CHECK(pair.announced->calls.at(1).asked == 1);
  pair.world.run_for(2s);
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK(watch.expired());
  CHECK(pair.announced->let_go(1));
  CHECK_FALSE(pair.announced->calls.at(1).ran);
  CHECK(c.peer("b").with({.timeout = 1s}).call<int(int)>("twice", 4).get() == 8);
}

TEST_CASE("a call that times out when all of it has left may run") {
  Pair pair;
  pair.announced->holds = false;
  pair.world.network->set_link({.latency = 300ms, .capacity = kLarge});
  const Node c = pair.world.join("c");
  CHECK(c.call<int(int)>("b", "twice", 4).get() == 8);
  auto call =
      c.peer("b").with({.timeout = 200ms}).call<Swallow>("swallow", 1, Bytes::allocate(kMiB));
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(test::may_have_run(result.error()));
  pair.world.run_for(10s);
  CHECK(pair.announced->calls.at(1).ran);
}

TEST_CASE("a broken connection lets go of what was held, at both ends") {
  Pair pair;
  auto [bytes, watch] = watched(kLarge);
  auto held = pair.swallow(1, std::move(bytes));
  pair.world.run_for(1s);
  CHECK_FALSE(pair.announced->let_go(1));
  pair.world.kill("a");
  pair.world.run_for(1s);
  CHECK(pair.announced->let_go(1));
  pair.announced->calls.at(1).gate->open();
  pair.world.run_for(10s);
  CHECK(watch.expired());
  REQUIRE(held.ready());
  CHECK_FALSE(outcome(std::move(held)));
  CHECK_FALSE(pair.announced->calls.at(1).ran);
}

TEST_CASE("a peer that falls silent lets go of what was held") {
  Pair pair;
  pair.b.expose("never", [] { return Promise<int>().get_future(); });
  Promise<int> open;
  auto future = std::make_shared<Future<int>>(open.get_future());
  pair.b.expose("later", [future] { return std::move(*future); });
  auto later = pair.a.call<int()>("b", "later");  // its answer keeps the session
  auto held = pair.swallow(1, Bytes::allocate(kLarge));
  pair.world.run_for(1s);
  pair.world.network->isolate("a");
  pair.world.run_for(3s);
  CHECK_FALSE(pair.announced->let_go(1));
  pair.world.run_for(10s);
  CHECK(pair.announced->let_go(1));
  open.set_value(1);
  CHECK_FALSE(outcome(std::move(held)));
  CHECK_FALSE(outcome(std::move(later)));
}

TEST_CASE("a sender that shuts down waits for its held calls until the deadline, and names them") {
  Pair pair;
  auto [bytes, watch] = watched(kLarge);
  auto held = pair.swallow(1, std::move(bytes), {.timeout = Duration::max()});
  pair.world.run_for(1s);
  const TimePoint start = pair.world.loop->now();
  const auto left = pair.a.shutdown(2s);
  CHECK(pair.world.loop->now() - start >= 2s);
  CHECK(pair.world.loop->now() - start < 2010ms);
  REQUIRE(left.size() == 2);
  CHECK(left[0] == "b: swallow");
  CHECK_THAT(left[1], Catch::Contains(" bytes to b, which has paused them"));
  CHECK(outcome(std::move(held)).code() == ErrorCode::shut_down);
  CHECK(watch.expired());
  pair.world.run_for(1s);
  CHECK(pair.announced->let_go(1));
  CHECK_FALSE(pair.announced->calls.at(1).ran);
}

TEST_CASE("a held notification is waited for as well, and sent when it may be") {
  for (const bool opened : {true, false}) {
    Pair pair;
    pair.a.peer("b").notify<Swallow>("swallow", 1, scribbled(kLarge, 1));
    pair.world.run_for(1s);
    REQUIRE(pair.announced->calls.contains(1));
    if (opened) {
      pair.world.loop->schedule(pair.world.loop->now() + 300ms,
                                [&] { pair.announced->calls.at(1).gate->open(); });
    }
    const TimePoint start = pair.world.loop->now();
    CHECK(pair.a.shutdown(2s).empty() == opened);
    CHECK(pair.world.loop->now() - start >= (opened ? 300ms : 2s));
    pair.world.run_for(1s);
    CHECK(pair.announced->calls.at(1).ran == opened);
    CHECK(pair.announced->calls.at(1).kept.expired());
  }
}

TEST_CASE(
    "a receiver that shuts down waits for no call that it holds, and takes new ones at once") {
  Pair pair;
  pair.b.expose("slow", [&pair] {
    Promise<int> promise;
    auto future = promise.get_future();
    pair.world.loop->schedule(pair.world.loop->now() + 1s,
                              [promise = std::move(promise)]() mutable { promise.set_value(1); });
    return future;
  });
  auto held = pair.swallow(1, Bytes::allocate(kLarge));
  auto slow = pair.a.call<int()>("b", "slow");
  pair.world.run_for(100ms);
  std::optional<Result<std::size_t>> refused;
  pair.world.loop->schedule(pair.world.loop->now() + 100ms, [&] {
    pair.swallow(2, Bytes::allocate(kLarge)).then([&](const Result<std::size_t>& result) {
      refused = result;
    });
  });
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.b.shutdown(10s).empty());
  CHECK(pair.world.loop->now() - start < 2s);
  CHECK(pair.announced->let_go(1));
  CHECK_FALSE(pair.announced->calls.contains(2));
  pair.world.run_for(10s);
  const auto told = outcome(std::move(held));
  REQUIRE(told.code() == ErrorCode::shut_down);
  CHECK_FALSE(test::may_have_run(told.error()));
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::shut_down);
  CHECK_FALSE(test::may_have_run(refused->error()));
  CHECK(outcome(std::move(slow)).value() == 1);
  pair.announced->calls.at(1).gate->open();
  pair.world.run_for(1s);
}

TEST_CASE("a gate outlives its node, and does nothing then") {
  std::shared_ptr<AnnouncedCalls> announced;
  {
    Pair pair;
    announced = pair.announced;
    auto held = pair.swallow(1, Bytes::allocate(kLarge));
    pair.world.run_for(1s);
  }
  CHECK(announced->let_go(1));
  announced->calls.at(1).gate->open();
}

TEST_CASE("a node may hold calls of its own") {
  Pair pair;
  auto held = pair.b.call<Swallow>("b", "swallow", 1, scribbled(kLarge, 3));
  pair.world.run_for(1s);
  CHECK_FALSE(held.ready());
  pair.announced->calls.at(1).gate->open();
  CHECK(std::move(held).get() == kLarge);
  CHECK(pair.announced->calls.at(1).argument == scribbled(kLarge, 3));
}

}  // namespace held_calls_test
}  // namespace batchrpc
