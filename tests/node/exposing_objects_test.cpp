// Classes and methods that are exposed, listed, refused and taken back.
#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace exposing_objects {

/// Has two constructors, an overloaded method, and can travel.
struct Sum {
  explicit Sum(int a) : total(a) {}
  Sum(int a, int b) : total(a + b) {}
  int get() { return total; }
  int add(int n) { return total += n; }
  int add(int n, int m) { return total += n + m; }
  Sum twin() { return Sum(total); }
  int total;
};

Sum make_sum() { return Sum(7); }

}  // namespace exposing_objects

template <>
struct batchrpc::Codec<exposing_objects::Sum> {
  using Wire = int;
  static int encode(const exposing_objects::Sum& sum) { return sum.total; }
  static exposing_objects::Sum decode(int&& wire) { return exposing_objects::Sum(wire); }
};

namespace exposing_objects {

/// Its methods have no plain names.
template <class T>
class Box {
 public:
  T get() const { return T{7}; }
  T operator()(T n) const { return n + 1; }
};

}  // namespace exposing_objects

namespace batchrpc {
namespace exposing_objects_test {

TEST_CASE("methods without a plain name are exposed and called by one that is given") {
  const test::NodePair pair;
  using exposing_objects::Box;
  pair.b.expose<&Box<int>::get>("get");
  pair.b.expose<&Box<int>::operator()>("more");
  {
    const auto box = pair.b.own(std::make_shared<Box<int>>());
    CHECK(box.call<int()>("get").get() == 7);
    CHECK(box.call<int(int)>("more", 1).get() == 2);
  }
  pair.world.run_for(std::chrono::seconds(1));
}

using namespace std::chrono_literals;
using Catch::Contains;
using exposing_objects::Sum;
using test::outcome;
using test::VirtualWorld;
using Names = std::vector<std::string>;

struct Pair {
  // What nodes that end leave to the loop keeps the loop alive until it has run.
  struct LastTasks {
    ~LastTasks() { world.run_for(1s); }
    const VirtualWorld& world;
  };

  VirtualWorld world;
  LastTasks last_tasks{world};
  Node a = world.root("a");
  Node b = world.join("b");
};

TEST_CASE(
    "a class is created by one constructor, and a second one is refused, the same one is not") {
  const Pair pair;
  pair.b.expose_class<Sum(int)>();
  pair.b.expose_class<Sum(int)>();
  CHECK_THROWS_WITH((pair.b.expose_class<Sum(int, int)>()),
                    Contains("'exposing_objects::Sum' is exposed already") &&
                        Contains("void(i32), not void(i32,i32)") &&
                        Contains("unexpose(\"exposing_objects::Sum\")"));
  CHECK_THROWS_AS((pair.b.expose_class<Sum(int, int)>()), InvalidArgument);
  pair.b.expose<&Sum::get>();
  CHECK(pair.a.create<Sum>("b", 5).call<&Sum::get>().get() == 5);
}

TEST_CASE("of an overloaded method one is exposed, and a second one needs another name") {
  const Pair pair;
  constexpr auto kOne = static_cast<int (Sum::*)(int)>(&Sum::add);
  constexpr auto kTwo = static_cast<int (Sum::*)(int, int)>(&Sum::add);
  pair.b.expose<kOne>();
  pair.b.expose<kOne>();
  CHECK_THROWS_WITH(pair.b.expose<kTwo>(), Contains("'exposing_objects::Sum::add'") &&
                                               Contains("i32(i32), not i32(i32,i32)"));
  pair.b.expose<kTwo>("add two");
  pair.b.expose_class<Sum(int)>();
  const auto sum = pair.a.create<Sum>("b", 5);
  CHECK(sum.call<kOne>(1).get() == 6);
  CHECK(sum.call<int(int, int)>("add two", 1, 2).get() == 9);
}

TEST_CASE("a class can be taken back, and exposed with another constructor, and its objects stay") {
  const Pair pair;
  pair.b.expose_class<Sum(int)>();
  pair.b.expose<&Sum::get>();
  const RRef<Sum> old = pair.a.create<Sum>("b", 5);
  CHECK(old.to_here().get().total == 5);
  CHECK(old.with({.timeout = std::chrono::seconds(1)}).to_here().get().total == 5);
  CHECK(pair.b.unexpose("exposing_objects::Sum"));
  CHECK_FALSE(pair.b.unexpose("exposing_objects::Sum"));
  CHECK(outcome(old.to_here()).code() == ErrorCode::not_found);
  CHECK(old.call<&Sum::get>().get() == 5);
  CHECK(outcome(pair.a.create<Sum>("b", 5).call<&Sum::get>()).code() == ErrorCode::not_found);
  pair.b.expose_class<Sum(int, int)>();
  CHECK(pair.a.create<Sum>("b", 5, 6).call<&Sum::get>().get() == 11);
}

TEST_CASE("a factory can be taken back, a function and a method, and has a schema") {
  const Pair pair;
  pair.b.expose_factory<&exposing_objects::make_sum>();
  pair.b.expose_factory<&Sum::twin>();
  CHECK(exposed_functions(pair.b) ==
        Names{"exposing_objects::Sum::twin", "exposing_objects::make_sum"});
  CHECK_THAT(function_schema(pair.b, "exposing_objects::Sum::twin"), Contains("Arguments"));
  CHECK(pair.b.unexpose<&exposing_objects::make_sum>());
  CHECK(pair.b.unexpose<&Sum::twin>());
  CHECK_FALSE(pair.b.unexpose<&Sum::twin>());
  CHECK(exposed_functions(pair.b).empty());
}

TEST_CASE("a method behind remote references can be taken back, and exposed again") {
  const Pair pair;
  pair.b.expose_class<Sum(int)>();
  pair.b.expose<&Sum::get>();
  const RRef<Sum> sum = pair.a.create<Sum>("b", 5);
  CHECK(sum.call<&Sum::get>().get() == 5);
  CHECK(pair.b.unexpose<&Sum::get>());
  CHECK_FALSE(pair.b.unexpose<&Sum::get>());
  CHECK(outcome(sum.call<&Sum::get>()).code() == ErrorCode::not_found);
  pair.b.expose<&Sum::get>();
  CHECK(sum.call<&Sum::get>().get() == 5);
}

TEST_CASE("classes and their methods are listed by their names, and have schemas") {
  const Pair pair;
  pair.b.expose("f", [] {});
  CHECK(exposed_functions(pair.b) == Names{"f"});
  pair.b.expose<&Sum::get>();
  pair.b.expose<&Sum::get>(std::make_shared<Sum>(1));
  pair.b.expose_class<Sum(int, int)>();
  CHECK(exposed_functions(pair.b) ==
        Names{"exposing_objects::Sum", "exposing_objects::Sum::get", "f"});
  CHECK_THAT(function_schema(pair.b, "exposing_objects::Sum"), Contains("arg2 @2 :Int32"));
  CHECK_THAT(function_schema(pair.b, "exposing_objects::Sum::get"), Contains("result"));
  pair.b.unexpose<&Sum::get>();
  CHECK(exposed_functions(pair.b) == Names{"exposing_objects::Sum", "f"});
  CHECK_THROWS_WITH(function_schema(pair.b, "exposing_objects::Sums"),
                    Contains("did you mean 'exposing_objects::Sum'?"));
}

TEST_CASE("what the library has exposed for itself cannot be taken back") {
  const Pair pair;
  pair.b.expose_class<Sum(int)>();
  pair.b.expose<&Sum::get>();
  CHECK_FALSE(pair.b.unexpose("batchrpc.create:exposing_objects::Sum"));
  CHECK_FALSE(pair.b.unexpose("batchrpc.release"));
  CHECK(pair.a.create<Sum>("b", 5).call<&Sum::get>().get() == 5);
}

}  // namespace exposing_objects_test
}  // namespace batchrpc
