#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "rref/objects.hpp"

// What is created or called that its owner has not exposed, or not so.

namespace batchrpc {
namespace rref_exposing_errors_test {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Point;
using objects::Refusing;
using test::ObjectWorld;
using test::outcome;

TEST_CASE("an object of a class that is not exposed cannot be created") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.owner.create<Counter>("third", 5);
  const auto at_once = outcome(counter.call<&Counter::add>(1));
  CHECK(at_once.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(at_once.error()));
  nodes.settle();
  const auto later = outcome(counter.call<&Counter::add>(1));
  CHECK(later.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(later.error()));
  CHECK_THAT(later.message(), Catch::Contains("objects::Counter"));
  CHECK_THAT(later.message(), Catch::Contains("third"));
  CHECK_THAT(later.message(), Catch::Contains("expose_class"));
  CHECK(nodes.user.create<Counter>("owner", 1).call<&Counter::add>(1).get() == 2);
}

TEST_CASE("calls of an object whose class is not exposed end, though its methods are") {
  const ObjectWorld nodes;
  nodes.third.expose<&Counter::add>();
  const RRef<Counter> counter = nodes.user.create<Counter>("third", 5);
  const auto result = outcome(counter.call<&Counter::add>(1));
  CHECK(result.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("objects::Counter"));
  CHECK_THAT(result.message(), Catch::Contains("expose_class"));
  CHECK(nodes.world.time() < 1s);
}

TEST_CASE("a method that is not exposed gives NotFound, which names it") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 5);
  const auto result = outcome(counter.call<&Counter::hidden>());
  CHECK(result.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("objects::Counter::hidden"));
  CHECK_THAT(result.message(), Catch::Contains("owner"));
  CHECK(counter.call<&Counter::add>(2).get() == 7);
}

TEST_CASE("what is exposed in another way than it is used says so") {
  const ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  nodes.owner.expose("plain", [](int n) { return n; });
  const auto message = [](auto future) { return outcome(std::move(future)).message(); };
  CHECK_THAT(message(counter.call<int(int)>("plain", 3)),
             Catch::Contains("as a function: call it on the node"));
  CHECK_THAT(message(nodes.user.call<int(int)>("owner", "objects::Counter::add", 3)),
             Catch::Contains("as a method of an object: call it on an RRef"));
  CHECK_THAT(message(counter.create<&Counter::value>().ready()),
             Catch::Contains("call expose_factory there"));
  CHECK_THAT(message(nodes.user.create<Refusing>("owner").ready()),
             Catch::Contains("call expose_class or expose_factory there"));
}

TEST_CASE("a call of what is exposed in another way does not wait for its function") {
  test::VirtualWorld world;
  NodeOptions options = world.options("owner");
  options.expose_within = 5s;
  const Node owner(options);
  const Node user = world.join("user");
  owner.expose<&Counter::add>();
  const Duration before = world.time();
  CHECK(outcome(user.call<int(int)>("owner", "objects::Counter::add", 3)).code() ==
        ErrorCode::not_found);
  CHECK(world.time() - before < 1s);
}

TEST_CASE("a method that is exposed under a name that is nearly the same is suggested") {
  const ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  nodes.owner.expose<&Counter::value>("amount");
  const auto result = outcome(counter.call<int()>("amuont"));
  CHECK(result.code() == ErrorCode::not_found);
  CHECK_THAT(result.message(), Catch::Contains("did you mean 'amount'?"));
  CHECK_THAT(outcome(nodes.user.call<int()>("owner", "amuont")).message(),
             !Catch::Contains("did you mean"));
}

TEST_CASE("a constructor with other arguments gives BadSignature, which names both") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", std::string("five"));
  const auto result = outcome(counter.call<&Counter::add>(1));
  nodes.settle();
  const auto later = outcome(counter.call<&Counter::add>(1));
  CHECK(later.code() == ErrorCode::bad_signature);
  CHECK_THAT(later.message(), Catch::Contains("the constructor of 'objects::Counter' on owner"));
  CHECK_THAT(later.message(), Catch::Contains("void(i32)"));
  CHECK_THAT(later.message(), Catch::Contains("void(str)"));
  CHECK(result.code() == ErrorCode::bad_signature);
  CHECK_THAT(result.message(), Catch::Contains(later.message()));
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK(nodes.user.create<Counter>("owner", 1).call<&Counter::add>(1).get() == 2);
}

TEST_CASE("a handle that is taken for one of another class is refused with the names of both") {
  const ObjectWorld nodes;
  nodes.owner.expose("make", [&nodes] { return nodes.owner.own(std::make_shared<Counter>(1)); });
  const auto wrong = nodes.user.call<RRef<Point>()>("owner", "make").get();
  const auto result = outcome(wrong.call<&Point::move>(1, 2));
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK_THAT(result.message(), Catch::Contains("objects::Counter"));
  CHECK_THAT(result.message(), Catch::Contains("objects::Point"));
  CHECK(outcome(wrong.to_here()).code() == ErrorCode::invalid_argument);
  CHECK(nodes.user.create<Counter>("owner", 1).call<&Counter::add>(1).get() == 2);
}

}  // namespace rref_exposing_errors_test
}  // namespace batchrpc
