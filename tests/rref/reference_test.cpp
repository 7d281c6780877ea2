#include "batchrpc/rref/reference.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "rref/objects.hpp"

namespace objects {
namespace {
std::vector<batchrpc::RRef<Counter>> kept;
}
void keep(batchrpc::RRef<Counter> counter) { kept.push_back(std::move(counter)); }
}  // namespace objects

// How long an object lives: while a handle to it does, anywhere.

namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Diary;
using objects::Holder;
using test::ObjectWorld;
using test::outcome;

TEST_CASE("an object dies when its last handle does, and not before") {
  const ObjectWorld nodes;
  RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  std::optional<RRef<Counter>> copy = counter;
  nodes.settle();
  CHECK(Counter::alive == 1);
  counter = {};
  nodes.settle();
  CHECK(Counter::alive == 1);
  CHECK(copy->call<&Counter::add>(1).get() == 6);
  copy.reset();
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("a handle that is dropped at once lets its calls run before the object dies") {
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "owner", {.latency = 5ms, .jitter = 5ms});
  Future<int> sum;
  {
    const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
    counter.call<&Counter::add>(1);
    sum = counter.call<&Counter::add>(1);
  }
  CHECK(sum.get() == 7);
  nodes.user.create<Counter>("owner", 5);  // never used
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("an object lives until its asynchronous method is ready") {
  const ObjectWorld nodes;
  nodes.third.expose("wait", [&nodes] {
    return nodes.third.wait_for_peer("late", 60s).then([](const PeerInfo& /*peer*/) { return 7; });
  });
  RRef<Counter> counter = nodes.owner.own(std::make_shared<Counter>(1));
  Promise<void> open;
  Diary::gate = open.get_future();
  std::optional<RRef<Diary>> diary = nodes.user.create<Diary>("owner", "one");
  const std::string line = "a line that is too long to be kept in place";
  Future<std::string> ready = diary->call<&Diary::coroutine>(line);
  diary.reset();
  nodes.settle();
  open.set_value();  // the coroutine writes to the object, and reads its argument
  CHECK(ready.get() == line + " is ready");
  Diary::gate.reset();
}

TEST_CASE("a handle under way keeps the object alive, though its sender has dropped its own") {
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "third", {.latency = 2s});
  int sum = 0;
  nodes.third.expose("use", [&sum](const RRef<Counter>& counter) {
    counter.call<&Counter::add>(1).then([&sum](int result) { sum = result; });
  });
  {
    const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
    nodes.user.peer("third").notify<void(RRef<Counter>)>("use", counter);
  }
  nodes.world.run_for(1s);
  CHECK(Counter::alive == 1);
  CHECK(sum == 0);
  nodes.world.run_for(30s);
  CHECK(sum == 6);
  CHECK(Counter::alive == 0);
}

TEST_CASE("an object lives in the hands of a third node, until that drops the handle") {
  const ObjectWorld nodes;
  RRef<Counter> kept;
  nodes.third.expose("keep", [&kept](RRef<Counter> counter) { kept = std::move(counter); });
  {
    const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
    nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  }
  nodes.settle();
  CHECK(Counter::alive == 1);
  CHECK(kept.call<&Counter::add>(1).get() == 6);
  kept = {};
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("a release that overtakes the announcement of its handle does no harm") {
  const ObjectWorld nodes;
  RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  CHECK(counter.call<&Counter::add>(1).get() == 6);
  // From now on what the user tells the owner waits, and the third node is faster.
  nodes.third.expose("drop", [](const RRef<Counter>& /*counter*/) {});
  nodes.world.network->partition("user", "owner");
  nodes.user.call<void(RRef<Counter>)>("third", "drop", counter).get();
  nodes.world.run_for(1s);
  CHECK(Counter::alive == 1);
  nodes.world.network->heal("user", "owner");
  CHECK(counter.call<&Counter::add>(1).get() == 7);
  counter = {};
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("a call to many sends each a handle of its own") {
  const ObjectWorld nodes;
  auto& kept = objects::kept;
  nodes.third.expose<&objects::keep>();
  nodes.owner.expose<&objects::keep>();
  {
    const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
    const std::vector<std::string> peers{"third", "owner", "third"};
    for (auto& future : nodes.user.each(peers).call<&objects::keep>(counter))
      future.get();
  }
  CHECK(kept.size() == 3);
  while (!kept.empty()) {
    nodes.settle();
    CHECK(Counter::alive == 1);
    kept.pop_back();
  }
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("an object that a node owns itself lives by its handles as well") {
  const ObjectWorld nodes;
  auto object = std::make_shared<Counter>(1);
  std::optional<RRef<Counter>> handle = nodes.owner.own(object);
  const std::weak_ptr<Counter> watch = object;
  object.reset();
  nodes.settle();
  CHECK(Counter::alive == 1);
  CHECK(handle->local().get() == watch.lock());
  handle.reset();
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("objects that hold the last handles of others die with them, in any depth") {
  const ObjectWorld nodes;
  {
    const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
    const RRef<Holder> holder = nodes.user.create<Holder>("owner", counter);
    CHECK(holder.call<&Holder::add>(1).get() == 6);
  }
  nodes.settle();
  CHECK(Holder::alive == 0);
  CHECK(Counter::alive == 0);
}

TEST_CASE("a node that shuts down destroys its objects, though others hold handles") {
  ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  const RRef<Holder> holder = nodes.user.create<Holder>("owner", counter);
  CHECK(holder.call<&Holder::add>(1).get() == 6);
  CHECK(Counter::alive == 1);
  nodes.owner.shutdown(1s);
  CHECK(Holder::alive == 0);
  CHECK(Counter::alive == 0);
  nodes.settle();
  const auto result = outcome(counter.call<&Counter::add>(1));
  CHECK_FALSE(result);
  CHECK_FALSE(test::may_have_run(result.error()));
}

TEST_CASE("handles outlive their node, and may be dropped then") {
  ObjectWorld nodes;
  std::optional<RRef<Counter>> far;
  std::optional<RRef<Counter>> near;
  {
    const Node guest = nodes.world.join("guest");
    far = guest.create<Counter>("owner", 5);
    near = guest.own(std::make_shared<Counter>(6));
    CHECK(far->call<&Counter::add>(1).get() == 6);
  }
  CHECK(Counter::alive == 1);  // what the owner has stays there
  CHECK(far->owner() == "owner");
  CHECK(outcome(far->call<&Counter::add>(1)).code() == ErrorCode::shut_down);
  CHECK(outcome(near->call<&Counter::add>(1)).code() == ErrorCode::shut_down);
  CHECK_THROWS_AS(near->local().get(), ShutDown);
  far.reset();
  near.reset();
}

TEST_CASE("a node that shuts down while a method runs lets it finish and destroys the object") {
  ObjectWorld nodes;
  Promise<void> open;
  Diary::gate = open.get_future();
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "one");
  Future<void> waiting = diary.call<&Diary::wait>("a method");
  nodes.world.loop->schedule(nodes.world.loop->now() + 100ms, [&] { open.set_value(); });
  nodes.world.run_for(10ms);
  nodes.owner.shutdown(10s);
  CHECK(outcome(std::move(waiting)));
  Diary::gate.reset();
}

TEST_CASE("handles that are copied, sent about and dropped in any order keep and free objects") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    ObjectWorld nodes;
    test::expose_objects(nodes.third);
    nodes.world.network->set_link({.latency = 1ms, .jitter = 50ms});
    std::mt19937_64 random(seed);
    constexpr std::size_t kObjects = 4;
    std::vector<std::pair<std::size_t, RRef<Counter>>> held;  // by whichever node
    std::array<int, kObjects> handles{};
    const std::array<const Node*, 3> all{&nodes.owner, &nodes.user, &nodes.third};
    for (const Node* node : all) {
      node->expose("keep", [&](std::size_t object, RRef<Counter> counter) {
        held.emplace_back(object, std::move(counter));
      });
    }
    const auto any = [&random](std::size_t count) { return random() % count; };
    for (std::size_t object = 0; object < kObjects; ++object) {
      const Node& maker = *all[any(3)];
      held.emplace_back(
          object, maker.create<Counter>(any(2) == 0 ? "owner" : "third", static_cast<int>(object)));
    }
    int calls_failed = 0;
    std::vector<Future<void>> sent;
    for (int step = 0; step < 300 && !held.empty(); ++step) {
      const std::size_t at = any(held.size());
      const auto [object, counter] = held[at];
      switch (any(5)) {
        case 0:
          held.emplace_back(object, counter);
          break;
        case 1:
        case 2: {
          // The handle is sent by the node that it belongs to, whoever that is: here it is copied
          // by a call of the user's.
          sent.push_back(nodes.user.call<void(std::size_t, RRef<Counter>)>(
              all[any(3)]->name(), "keep", object, counter));
          break;
        }
        case 3:
          counter.call<&Counter::value>().then(
              [&calls_failed, object = object](const Result<int>& value) {
                if (!value || value.value() != static_cast<int>(object)) ++calls_failed;
              });
          break;
        default:
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (any(4) == 0) nodes.world.run_for(std::chrono::milliseconds(any(40)));
    }
    nodes.settle();
    CHECK(calls_failed == 0);
    for (auto& [object, counter] : held) {
      CHECK(counter.call<&Counter::value>().get() == static_cast<int>(object));
      ++handles[object];
    }
    CHECK(Counter::alive ==
          static_cast<int>(kObjects) - std::count(handles.begin(), handles.end(), 0));
    while (!held.empty()) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(any(held.size())));
      if (any(3) == 0) nodes.world.run_for(1ms);
    }
    nodes.settle();
    CHECK(Counter::alive == 0);
  }
}

}  // namespace
}  // namespace batchrpc
