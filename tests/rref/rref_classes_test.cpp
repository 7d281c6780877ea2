#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include "rref/objects.hpp"

namespace classes {

/// Callers know no more of it.
class Shape {
 public:
  virtual ~Shape() = default;
  virtual double area() const = 0;
  int sides() const { return sides_; }
  void set_sides(int sides) { sides_ = sides; }

 private:
  int sides_ = 0;
};

class Named {
 public:
  virtual ~Named() = default;
  std::string name() const { return "a square"; }
};

// The second base is not where the object begins.
class Square : public Shape, public Named {
 public:
  explicit Square(double side) : side_(side) {
    if (side < 0) throw std::runtime_error("a negative side");
  }
  double area() const override { return side_ * side_; }
  double side() const { return side_; }
  std::unique_ptr<Square> half() const { return std::make_unique<Square>(side_ / 2); }

 private:
  double side_;
};

class Shelf {
 public:
  explicit Shelf(double first) : first_(first) {}
  std::unique_ptr<Square> take(double more) {
    if (more > 100) return nullptr;
    return std::make_unique<Square>(first_ + more);
  }
  batchrpc::Future<std::shared_ptr<Square>> take_later(double more) {
    co_await *objects::Diary::gate;
    co_return std::make_shared<Square>(first_ + more);
  }
  std::unique_ptr<Square> fill(const batchrpc::Bytes& bytes) {
    return std::make_unique<Square>(static_cast<double>(bytes.size()));
  }
  double first() const { return first_; }

 private:
  double first_;
};

Shelf open_shelf(double first) { return Shelf(first); }
std::shared_ptr<Shelf> open_none(double /*first*/) { return nullptr; }

}  // namespace classes

namespace batchrpc {
namespace rref_classes_test {

using namespace std::chrono_literals;
using classes::Named;
using classes::Shape;
using classes::Shelf;
using classes::Square;
using objects::Counter;
using objects::Diary;
using test::ObjectWorld;
using test::outcome;

struct ClassWorld : ObjectWorld {
  ClassWorld() {
    owner.expose_class<Square(double), Shape, Named>();
    owner.expose<&Square::area>();
    owner.expose<&Square::side>();
    owner.expose<&Shape::sides>();
    owner.expose<&Shape::set_sides>();
    owner.expose<&Named::name>();
    owner.expose<&Square::area>("area of a square");
    owner.expose_factory<&classes::open_shelf>();
    owner.expose_factory<&classes::open_none>();
    owner.expose_factory<&Shelf::take>();
    owner.expose_factory<&Shelf::take_later>();
    owner.expose<&Shelf::first>();
  }
};

TEST_CASE("an RRef to a derived class is one to its base classes") {
  const ClassWorld nodes;
  const RRef<Square> square = nodes.user.create<Square>("owner", 3.0);
  const RRef<Shape> shape = square;
  const RRef<Named> named = square;
  shape.call<&Shape::set_sides>(4).get();
  CHECK(square.call<&Shape::sides>().get() == 4);
  CHECK(named.call<&Named::name>().get() == "a square");
  CHECK(square.call<&Square::area>().get() == 9);
  CHECK(nodes.third.name() == "third");
  nodes.owner.expose("sides", [](const RRef<Shape>& any) { return any.local().get()->sides(); });
  CHECK(nodes.user.call<int(RRef<Shape>)>("owner", "sides", square).get() == 4);
}

TEST_CASE("an RRef to a base keeps the object alive alone, and gets a handle of its own") {
  const ClassWorld nodes;
  RRef<Shape> shape = nodes.user.create<Square>("owner", 3.0);
  nodes.settle();
  CHECK(shape.call<&Shape::sides>().get() == 0);
  CHECK(rref_report(nodes.owner).owned.size() == 1);
  shape = {};
  nodes.settle();
  CHECK(rref_report(nodes.owner).owned.empty());
}

TEST_CASE("what an object that was never made was to make fails as it does, in the same words") {
  const ClassWorld nodes;
  nodes.settle();
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(10s);
  const auto shelf = nodes.user.create<&classes::open_shelf>("owner", 5.0);
  nodes.world.run_for(10s);
  const auto square = shelf.create<&Shelf::take>(1.0);
  const auto failed = outcome(shelf.ready());
  CHECK(failed.code() == ErrorCode::not_sent);
  CHECK(outcome(square.ready()).message() == failed.message());
}

TEST_CASE("a base that the owner has not named is refused with what to do") {
  const ClassWorld nodes;
  nodes.third.expose_class<Square(double)>();
  nodes.third.expose<&Shape::sides>();
  const RRef<Shape> shape = nodes.user.create<Square>("third", 3.0);
  const auto result = outcome(shape.call<&Shape::sides>());
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK_THAT(result.message(), Catch::Contains("expose_class<Derived(...), Base>"));
  // An object of the owner's own is known by the conversion.
  nodes.third.expose(
      "give", [&nodes] { return RRef<Shape>(nodes.third.own(std::make_shared<Square>(2.0))); });
  CHECK(nodes.user.call<RRef<Shape>()>("third", "give").get().call<&Shape::sides>().get() == 0);
}

TEST_CASE("a caller may know no more than an interface") {
  const ClassWorld nodes;
  nodes.third.expose_implementation<Shape, Square(double)>();
  nodes.third.expose<&Shape::area>();
  const RRef<Shape> shape = nodes.user.create<Shape>("third", 5.0);
  CHECK(shape.call<&Shape::area>().get() == 25);
  CHECK(rref_report(nodes.third).owned.at(0).type == "classes::Square");
  const auto negative = nodes.user.create<Shape>("third", -1.0);
  CHECK(outcome(negative.call<&Shape::area>()).code() == ErrorCode::remote_error);
  CHECK_NOTHROW(nodes.third.expose_implementation<Shape, Square(double)>());
  CHECK(outcome(nodes.user.create<Shape>("owner", 5.0).ready()).code() == ErrorCode::not_found);
}

TEST_CASE("a method has a name of its own where other programs call it") {
  const ClassWorld nodes;
  const auto square = nodes.user.create<Square>("owner", 3.0);
  CHECK(square.call<double()>("area of a square").get() == 9);
  CHECK(square.with({.timeout = 1s}).call<double()>("area of a square").get() == 9);
  CHECK(outcome(square.call<double()>("area of a circle")).code() == ErrorCode::not_found);
  CHECK(outcome(square.call<double(int)>("area of a square", 1)).code() ==
        ErrorCode::bad_signature);
}

TEST_CASE("objects are made by functions and by methods, and used at once") {
  const ClassWorld nodes;
  nodes.world.network->set_link("user", "owner", {.latency = 10ms});
  const auto shelf = nodes.user.create<&classes::open_shelf>("owner", 5.0);
  const auto square = shelf.create<&Shelf::take>(1.0);
  const Future<double> area = square.call<&Square::area>();
  nodes.world.run_for(25ms);  // one round trip for all three, and the connection is there
  CHECK(area.ready());
  CHECK(area.get() == 36);
  CHECK(shelf.call<&Shelf::first>().get() == 5);
}

TEST_CASE("what a factory makes may be there later, and calls wait for it") {
  const ClassWorld nodes;
  Promise<void> open;
  Diary::gate = open.get_future();
  const auto shelf = nodes.user.create<&classes::open_shelf>("owner", 5.0);
  const auto square = shelf.create<&Shelf::take_later>(1.0);
  const Future<double> area = square.call<&Square::area>();
  const Future<void> ready = square.ready();
  CHECK(shelf.call<&Shelf::first>().get() == 5);
  nodes.settle();
  CHECK_FALSE(area.ready());
  CHECK_FALSE(ready.ready());
  open.set_value();
  CHECK(area.get() == 36);
  ready.get();
  Diary::gate.reset();
}

TEST_CASE("calls wait for what a factory makes of a large argument, however long it takes") {
  ClassWorld nodes;
  nodes.owner.expose_factory<&Shelf::fill>();
  nodes.world.network->set_link({.latency = 100ms});  // for each 256 KiB
  const Node far = nodes.world.join("far");
  const auto shelf = far.create<&classes::open_shelf>("owner", 5.0);
  const auto square = shelf.create<&Shelf::fill>(Bytes::allocate(std::size_t{48} << 20));
  const Future<double> side = square.with({.timeout = 10min}).call<&Square::side>();
  nodes.world.run_for(12s);
  CHECK_FALSE(side.ready());
  CHECK(side.get() == static_cast<double>(std::size_t{48} << 20));
}

TEST_CASE("there is no handle to nothing") {
  const ObjectWorld nodes;
  CHECK_THROWS_AS(nodes.owner.own(std::shared_ptr<Counter>()), InvalidArgument);
}

TEST_CASE("a factory that fails, or makes nothing, fails the calls on what it was to make") {
  const ClassWorld nodes;
  const auto shelf = nodes.user.create<&classes::open_shelf>("owner", 5.0);
  const auto negative = shelf.create<&Shelf::take>(-10.0);
  const auto result = outcome(negative.call<&Square::area>());
  CHECK(result.code() == ErrorCode::remote_error);
  CHECK_THAT(result.message(), Catch::Contains("a negative side"));
  CHECK(outcome(shelf.create<&Shelf::take>(200.0).call<&Square::area>()).code() ==
        ErrorCode::invalid_argument);
  CHECK(outcome(nodes.user.create<&classes::open_none>("owner", 1.0).ready()).code() ==
        ErrorCode::invalid_argument);
  const auto nowhere = nodes.user.create<&classes::open_shelf>("third", 5.0);
  CHECK(outcome(nowhere.create<&Shelf::take>(1.0).call<&Square::area>()).code() ==
        ErrorCode::not_found);
  CHECK(shelf.call<&Shelf::first>().get() == 5);
}

TEST_CASE("what an object was to make that could not be made fails with that one's error") {
  const ClassWorld nodes;
  nodes.owner.expose_class<Square(double)>();
  nodes.owner.expose_factory<&Square::half>();
  const auto square = nodes.user.create<Square>("owner", -1.0);
  const auto half = square.create<&Square::half>();
  const auto quarter = half.create<&Square::half>();
  for (const auto& result :
       {outcome(square.call<&Square::side>()), outcome(half.call<&Square::side>()),
        outcome(quarter.call<&Square::side>())}) {
    CHECK(result.code() == ErrorCode::remote_error);
    CHECK_THAT(result.message(), Catch::Contains("a negative side"));
    CHECK_THAT(result.message(), Catch::Contains("the constructor of classes::Square"));
    CHECK_THAT(result.message(), !Catch::Contains("DidNotRun"));
  }
}

TEST_CASE("what an object that is gone was to make fails as its calls do, at once and later") {
  const ClassWorld nodes;
  const auto shelf = nodes.user.create<&classes::open_shelf>("owner", 5.0);
  shelf.ready().get();
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(60s);
  nodes.world.network->heal("user", "owner");
  nodes.world.network->set_link("user", "owner", {.latency = 50ms});
  nodes.user.wait_for_peer("owner", 30s).get();
  const auto square = shelf.create<&Shelf::take>(1.0);
  const auto at_once = outcome(square.call<&Square::area>());
  nodes.settle();
  const auto later = outcome(square.call<&Square::area>());
  for (const auto& error : {at_once.error(), later.error(), outcome(square.ready()).error()}) {
    CHECK(code_of(error) == ErrorCode::rref_expired);
    CHECK_FALSE(test::may_have_run(error));
  }
}

TEST_CASE("a handle says when its object is ready, or why it never will be") {
  const ObjectWorld nodes;
  nodes.user.create<Counter>("owner", 1).ready().get();
  nodes.owner.own(std::make_shared<Counter>(1)).ready().get();
  CHECK(outcome(nodes.user.create<objects::Broken>("owner", true).ready()).code() ==
        ErrorCode::remote_error);
  CHECK_THROWS_AS(RRef<Counter>().ready(), InvalidArgument);
}

TEST_CASE("notifications of an object keep their place among calls, large ones too") {
  const ObjectWorld nodes;
  const auto diary = nodes.user.create<Diary>("owner", "one");
  diary.notify<&Diary::note>("a");
  diary.call<&Diary::note>(std::string(100'000, 'b'));
  diary.notify<&Diary::note>("c");
  diary.notify<&Diary::note>(std::string(100'000, 'd'));
  const auto lines = diary.call<&Diary::lines>().get();
  REQUIRE(lines.size() == 5);
  CHECK(lines.at(1) == "a");
  CHECK(lines.at(2).front() == 'b');
  CHECK(lines.at(3) == "c");
  CHECK(lines.at(4).front() == 'd');
  CHECK_THROWS_AS(RRef<Diary>().notify<&Diary::note>("e"), InvalidArgument);
}

TEST_CASE("notifications run methods that return something, by their names, too") {
  const ObjectWorld nodes;
  nodes.owner.expose<&Counter::add>("more");
  const auto counter = nodes.user.create<Counter>("owner", 5);
  counter.notify<&Counter::add>(1);
  counter.notify<int(int)>("more", 10);
  CHECK(counter.call<&Counter::value>().get() == 16);
}

}  // namespace rref_classes_test
}  // namespace batchrpc
