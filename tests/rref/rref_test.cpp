#include "batchrpc/rref/rref.hpp"

#include <catch2/catch.hpp>
#include <unordered_set>

#include "rref/objects.hpp"

// What a handle can do while all goes well. Its life: reference_test.cpp; errors:
// rref_errors_test.cpp.

namespace batchrpc {
namespace rref_test {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Diary;
using objects::Holder;
using objects::Point;
using test::ObjectWorld;
using test::outcome;
using Lines = std::vector<std::string>;

TEST_CASE("an object is created on another node, and its methods are called there") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  CHECK(counter.call<&Counter::add>(2).get() == 7);
  CHECK(counter.call<&Counter::add>(10).get() == 17);
  CHECK(counter.call<&Counter::value>().get() == 17);
}

TEST_CASE("arguments are converted to the types of the constructor that create names") {
  const ObjectWorld nodes;
  const short start = 5;
  const RRef<Counter> counter = nodes.user.create<Counter(int)>("owner", start);
  CHECK(counter.call<&Counter::add>(2).get() == 7);
  const char* const first = "care";
  const RRef<Diary> diary = nodes.user.create<Diary(const std::string&)>("owner", first);
  CHECK(diary.call<&Diary::lines>().get() == Lines{"made with care"});
}

TEST_CASE("with() gives a handle options for its calls and for ready()") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  CHECK(counter.with({.timeout = 2s}).call<&Counter::add>(2).get() == 7);
  nodes.world.network->partition("user", "owner");
  const auto hasty = counter.with({.timeout = 10ms});
  CHECK(outcome(hasty.call<&Counter::value>()).code() == ErrorCode::timed_out);
  CHECK(outcome(hasty.ready()).code() == ErrorCode::timed_out);
  CHECK_THROWS_AS(RRef<Counter>().with({}).call<&Counter::value>(), InvalidArgument);
}

TEST_CASE("a notification that carries a handle arrives, also from a callback") {
  const ObjectWorld nodes;
  nodes.owner.expose("answer", [] {});
  int taken = 0;
  nodes.owner.expose("take", [&taken](const RRef<Counter>& /*counter*/) { ++taken; });
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  nodes.user.call<void()>("owner", "answer").then([&] {
    nodes.user.peer("owner")
        .with({.cancel_when_dropped = true})
        .notify<void(RRef<Counter>)>("take", counter);
  });
  nodes.world.run_for(1s);
  CHECK(taken == 1);
}

TEST_CASE("create returns at once, and so do calls on the new handle") {
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "owner", {.latency = 100ms});
  const Duration before = nodes.world.time();
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  Future<int> first = counter.call<&Counter::add>(1);
  Future<int> second = counter.call<&Counter::add>(1);
  CHECK(nodes.world.time() == before);
  CHECK(Counter::alive == 0);
  CHECK(second.get() == 7);
  CHECK(first.get() == 6);
}

TEST_CASE("methods called at once start in order after the constructor") {
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "owner", {.latency = 1ms, .jitter = 5ms});
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "care");
  Lines expected{"made with care"};
  for (int i = 0; i < 100; ++i) {
    diary.call<&Diary::note>(std::to_string(i));
    expected.push_back(std::to_string(i));
  }
  CHECK(diary.call<&Diary::lines>().get() == expected);
}

TEST_CASE("an object runs one method at a time, other objects go on meanwhile") {
  const ObjectWorld nodes;
  Promise<void> open;
  Diary::gate = open.get_future();
  const RRef<Diary> busy = nodes.user.create<Diary>("owner", "one");
  const RRef<Diary> other = nodes.user.create<Diary>("owner", "two");
  Future<void> waiting = busy.call<&Diary::wait>("the first");
  Future<void> noted = busy.call<&Diary::note>("the second");
  // The owner has no threads of its own: the method waits, and other tasks run meanwhile.
  nodes.world.loop->schedule(nodes.world.loop->now() + 10ms, [&] {
    CHECK_FALSE(waiting.ready());
    CHECK_FALSE(noted.ready());
    CHECK(other.call<&Diary::lines>().get() == Lines{"made with two"});
    open.set_value();
  });
  CHECK(busy.call<&Diary::lines>().get() ==
        Lines{"made with one", "the first begins", "the first ends", "the second"});
  CHECK(waiting.ready());
  CHECK(noted.ready());
  Diary::gate.reset();
}

TEST_CASE("an asynchronous method frees the object when it returns its future") {
  const ObjectWorld nodes;
  Promise<void> open;
  Diary::gate = open.get_future();
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "one");
  Future<std::string> first = diary.call<&Diary::later>("the first");
  Future<std::string> second =
      diary.call<&Diary::coroutine>("the second, whose name is too long to be kept in place");
  diary.call<&Diary::note>("the third");
  CHECK(diary.call<&Diary::lines>().get() ==
        Lines{"made with one", "the first begins",
              "the second, whose name is too long to be kept in place begins", "the third"});
  CHECK_FALSE(first.ready());
  CHECK_FALSE(second.ready());
  open.set_value();
  CHECK(first.get() == "the first is ready");
  CHECK(second.get() == "the second, whose name is too long to be kept in place is ready");
  Diary::gate.reset();
}

TEST_CASE("to_here brings a copy of the object as it is after the calls before") {
  const ObjectWorld nodes;
  const RRef<Point> point = nodes.user.create<Point>("owner", 1, 2);
  Future<Point> early = point.to_here();
  point.call<&Point::move>(3, 4);
  const Point late = point.to_here().get();
  CHECK(early.get().x() == 1);
  CHECK(late.x() == 3);
  CHECK(late.y() == 4);
  CHECK(point.to_here().get().x() == 3);
}

TEST_CASE("a handle says who owns its object, and gives it there") {
  const ObjectWorld nodes;
  const RRef<Counter> far = nodes.user.create<Counter>("owner", 5);
  CHECK(far.owner() == "owner");
  CHECK_FALSE(far.is_owner());
  CHECK_THROWS_AS(far.local().get(), InvalidArgument);

  const RRef<Counter> near = nodes.user.own(std::make_shared<Counter>(9));
  CHECK(near.owner() == "user");
  CHECK(near.is_owner());
  CHECK(near.local().get()->value() == 9);
}

TEST_CASE("a peer is named by its rank as well") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>(0, 5);
  CHECK(counter.owner() == "owner");
  CHECK(counter.call<&Counter::add>(1).get() == 6);
}

TEST_CASE("a node creates objects on itself as on others") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.owner.create<Counter>("owner", 5);
  CHECK(counter.is_owner());
  CHECK(counter.local().get()->value() == 5);  // waits for the constructor
  CHECK(counter.call<&Counter::add>(2).get() == 7);
  CHECK(counter.local().get()->value() == 7);
}

TEST_CASE("a handle that comes to the owner as an argument gives the object itself") {
  const ObjectWorld nodes;
  nodes.owner.expose("peek", [](const RRef<Counter>& counter) {
    return counter.is_owner() ? counter.local().get()->value() : -1;
  });
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  CHECK(counter.call<&Counter::add>(2).get() == 7);
  CHECK(nodes.user.call<int(RRef<Counter>)>("owner", "peek", counter).get() == 7);
}

TEST_CASE("a handle that comes to a third node as an argument calls the owner") {
  const ObjectWorld nodes;
  nodes.third.expose("use", [](const RRef<Counter>& counter) {
    return counter.owner() == "owner" ? counter.call<&Counter::add>(1)
                                      : make_failed_future<int>(nullptr);
  });
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  CHECK(nodes.user.call<int(RRef<Counter>)>("third", "use", counter).get() == 6);
  CHECK(counter.call<&Counter::value>().get() == 6);
}

TEST_CASE("a handle to an object that is not made yet can be passed on and used at once") {
  // The third node's call is there before the creation.
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "owner", {.latency = 2s});
  nodes.third.expose("use",
                     [](const RRef<Counter>& counter) { return counter.call<&Counter::add>(1); });
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  CHECK(nodes.user.call<int(RRef<Counter>)>("third", "use", counter).get() == 6);
}

TEST_CASE("handles travel as results, and inside of other values") {
  const ObjectWorld nodes;
  nodes.owner.expose("make", [&nodes](int start) {
    return std::vector<RRef<Counter>>{nodes.owner.own(std::make_shared<Counter>(start)),
                                      RRef<Counter>(),
                                      nodes.owner.own(std::make_shared<Counter>(start + 1))};
  });
  const auto counters = nodes.user.call<std::vector<RRef<Counter>>(int)>("owner", "make", 5).get();
  REQUIRE(counters.size() == 3);
  CHECK(counters[0].call<&Counter::add>(10).get() == 15);
  CHECK_FALSE(counters[1]);
  CHECK(counters[2].call<&Counter::add>(10).get() == 16);
}

TEST_CASE("a handle is a constructor's argument, and a method's result") {
  const ObjectWorld nodes;
  test::expose_objects(nodes.third);
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  const RRef<Holder> holder = nodes.user.create<Holder>("third", counter);
  CHECK(holder.call<&Holder::add>(3).get() == 8);
  const RRef<Counter> again = holder.call<&Holder::give>().get();
  CHECK(again == counter);
  CHECK(again.call<&Counter::value>().get() == 8);
}

TEST_CASE("handles to one object are equal, wherever they come from, and hash alike") {
  const ObjectWorld nodes;
  nodes.third.expose("back", [](RRef<Counter> counter) { return counter; });
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  const RRef<Counter> other = nodes.user.create<Counter>("owner", 5);
  const RRef<Counter> back =
      nodes.user.call<RRef<Counter>(RRef<Counter>)>("third", "back", counter).get();
  CHECK(back == counter);
  CHECK(back != other);
  CHECK(back != RRef<Counter>());
  CHECK(RRef<Counter>() == RRef<Counter>());
  CHECK(std::unordered_set<RRef<Counter>>{counter, back, other, RRef<Counter>()}.size() == 3);
}

TEST_CASE("a method knows who calls and how long is left") {
  const ObjectWorld nodes;
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "one");
  const auto asked = diary.with({.timeout = 3s}).call<&Diary::asked>().get();
  CHECK(asked.first == "user");
  CHECK(asked.second == 3s);
}

TEST_CASE("a callback may create, call, copy, send and drop handles, and wait for them") {
  const ObjectWorld nodes;
  nodes.third.expose("use",
                     [](const RRef<Counter>& counter) { return counter.call<&Counter::add>(1); });
  int done = 0;
  {
    const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
    auto last = std::make_shared<std::optional<RRef<Counter>>>(counter);
    counter.call<&Counter::add>(1).then([&, last](int six) {
      CHECK(six == 6);
      const RRef<Counter> other = nodes.user.create<Counter>("owner", 10);
      CHECK(other.call<&Counter::add>(1).get() == 11);
      CHECK(nodes.user.call<int(RRef<Counter>)>("third", "use", **last).get() == 7);
      CHECK(nodes.user.own(std::make_shared<Counter>(1)).local().get()->value() == 1);
      nodes.user.create<Point>("owner", 1, 2).to_here().then([&done](const Point& point) {
        if (point.y() == 2) ++done;
      });
      last->reset();
      ++done;
    });
  }
  nodes.settle();
  CHECK(done == 2);
  CHECK(Counter::alive == 0);
}

}  // namespace rref_test
}  // namespace batchrpc
