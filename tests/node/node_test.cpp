#include "batchrpc/node/node.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace calls {

int add(int a, int b) { return a + b; }
void nothing() {}
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}
std::string shout(std::string_view text) { return std::string(text) + "!"; }
std::unique_ptr<int> boxed(std::unique_ptr<int> value) { return value; }
int noexcept_function(int x) noexcept { return 2 * x; }

struct Point {
  double x = 0;
  double y = 0;
  std::optional<std::string> label{};
};
Point mirrored(Point point) { return {point.y, point.x, point.label}; }

using Table = std::map<std::string, std::vector<std::variant<int, std::string>>>;
Table reversed(Table table) {
  for (auto& [key, values] : table)
    std::reverse(values.begin(), values.end());
  return table;
}

/// Counts how often one is encoded.
struct Counted {
  int value = 0;
  static inline int encodings = 0;
};
int value_of(const Counted& counted) { return counted.value; }

class Counter {
 public:
  int increase(int by) { return value_ += by; }
  [[nodiscard]] int value() const { return value_; }
  [[nodiscard]] batchrpc::Future<int> later() const { return batchrpc::make_ready_future(value_); }

 private:
  int value_ = 0;
};

}  // namespace calls

template <>
struct batchrpc::Codec<calls::Counted> {
  using Wire = int;
  static Wire encode(const calls::Counted& counted) {
    ++calls::Counted::encodings;
    return counted.value;
  }
  static calls::Counted decode(Wire value) { return {value}; }
};

namespace batchrpc {
namespace node_test {

using namespace std::chrono_literals;

using Pair = test::NodePair;

TEST_CASE("a free function is called by its address, and its arguments are converted") {
  Pair pair;
  pair.b.expose<&calls::add>();
  CHECK(pair.a.call<&calls::add>("b", 1, 2).get() == 3);
  CHECK(pair.a.call<&calls::add>("b", short{1}, 'b' - '`').get() == 3);
  CHECK(pair.a.call<&calls::add>(std::string("b"), -1, -2).get() == -3);
}

TEST_CASE("both sides of a connection call each other") {
  Pair pair;
  pair.a.expose<&calls::add>();
  pair.b.expose<&calls::add>();
  for (int i = 0; i < 10; ++i) {
    CHECK(pair.a.call<&calls::add>("b", i, 1).get() == i + 1);
    CHECK(pair.b.call<&calls::add>("a", i, 2).get() == i + 2);
  }
}

TEST_CASE("functions without result, with views, nested containers and move-only values") {
  Pair pair;
  pair.b.expose<&calls::nothing>();
  pair.b.expose<&calls::mean>();
  pair.b.expose<&calls::shout>();
  pair.b.expose<&calls::boxed>();
  pair.b.expose<&calls::mirrored>();
  pair.b.expose<&calls::reversed>();
  pair.b.expose<&calls::noexcept_function>();
  pair.a.call<&calls::nothing>("b").get();
  CHECK(pair.a.call<&calls::mean>("b", std::vector<double>{1, 2, 6}).get() == 3);
  CHECK(pair.a.call<&calls::shout>("b", "hello").get() == "hello!");
  CHECK(*pair.a.call<&calls::boxed>("b", std::make_unique<int>(7)).get() == 7);
  const auto point = pair.a.call<&calls::mirrored>("b", calls::Point{1, 2, "p"}).get();
  CHECK(point.x == 2);
  CHECK(point.y == 1);
  CHECK(point.label == "p");
  const calls::Table table{{"k", {1, "two", 3}}, {"empty", {}}};
  const auto reversed = pair.a.call<&calls::reversed>("b", table).get();
  CHECK(reversed.at("k") == std::vector<std::variant<int, std::string>>{3, "two", 1});
  CHECK(reversed.at("empty").empty());
  CHECK(pair.a.call<&calls::noexcept_function>("b", 4).get() == 8);
}

TEST_CASE("callables are exposed and called by a name, and may keep state") {
  Pair pair;
  int total = 0;
  pair.b.expose("accumulate", [&total](int x) { return total += x; });
  pair.b.expose("mutable", [count = 0]() mutable { return ++count; });
  pair.b.expose("noexcept", [](int x) noexcept { return x + 1; });
  CHECK(pair.a.call<int(int)>("b", "accumulate", 3).get() == 3);
  CHECK(pair.a.call<int(int)>("b", "accumulate", 4).get() == 7);
  CHECK(pair.a.call<int()>("b", "mutable").get() == 1);
  CHECK(pair.a.call<int()>("b", "mutable").get() == 2);
  CHECK(pair.a.call<int(int)>("b", "noexcept", 2).get() == 3);
}

TEST_CASE("a name may be any text") {
  Pair pair;
  const std::string name = "größer als / 0 \n" + std::string(1000, 'x');
  pair.b.expose(name, [] { return 1; });
  CHECK(pair.a.call<int()>("b", name).get() == 1);
}

TEST_CASE("a function exposed by its address can be called by its name") {
  Pair pair;
  pair.b.expose<&calls::add>();
  CHECK(pair.a.call<int(int, int)>("b", "calls::add", 1, 2).get() == 3);
  CHECK(exposed_functions(pair.b) == std::vector<std::string>{"calls::add"});
}

TEST_CASE("methods of an object are called, const ones and those that return futures as well") {
  Pair pair;
  const auto counter = std::make_shared<calls::Counter>();
  pair.b.expose<&calls::Counter::increase>(counter);
  pair.b.expose<&calls::Counter::value>(counter);
  pair.b.expose<&calls::Counter::later>(counter);
  CHECK(pair.a.call<&calls::Counter::increase>("b", 5).get() == 5);
  CHECK(pair.a.call<&calls::Counter::increase>("b", 5).get() == 10);
  CHECK(pair.a.call<&calls::Counter::value>("b").get() == 10);
  CHECK(pair.a.call<&calls::Counter::later>("b").get() == 10);
  CHECK(counter->value() == 10);
}

TEST_CASE("a node shares the object whose methods it exposes, until they are taken back") {
  Pair pair;
  auto counter = std::make_shared<calls::Counter>();
  const std::weak_ptr<calls::Counter> weak = counter;
  pair.b.expose<&calls::Counter::value>(std::move(counter));
  CHECK(pair.a.call<&calls::Counter::value>("b").get() == 0);
  CHECK_FALSE(weak.expired());
  CHECK(pair.b.unexpose<&calls::Counter::value>());
  CHECK(weak.expired());
}

TEST_CASE("an object that outlives the node is exposed by reference") {
  calls::Counter counter;
  Pair pair;
  pair.b.expose<&calls::Counter::increase>(counter);
  CHECK(pair.a.call<&calls::Counter::increase>("b", 2).get() == 2);
  CHECK(counter.value() == 2);
}

TEST_CASE("a notification runs the function, and nobody hears of it") {
  Pair pair;
  std::vector<int> seen;
  pair.b.expose("note", [&seen](int x) { seen.push_back(x); });
  pair.b.expose("throws", [] { throw std::runtime_error("nobody reads this"); });
  for (int i = 0; i < 3; ++i)
    pair.a.peer("b").notify<void(int)>("note", i);
  pair.a.peer("b").notify<void()>("throws");
  CHECK(seen.empty());
  pair.world.run_for(std::chrono::milliseconds(1));
  CHECK(seen == std::vector<int>{0, 1, 2});
  CHECK(pair.a.shutdown(std::chrono::seconds(1)).empty());
}

TEST_CASE("a notification whose function returns a value drops it") {
  Pair pair;
  pair.b.expose<&calls::add>();
  pair.a.peer("b").notify<&calls::add>(1, 2);
  CHECK(pair.a.call<&calls::add>("b", 1, 2).get() == 3);
}

TEST_CASE("notifications and calls to one peer run in the order in which they were made") {
  Pair pair;
  std::vector<int> seen;
  pair.b.expose("note", [&seen](int x) { seen.push_back(x); });
  pair.b.expose("count", [&seen] { return static_cast<int>(seen.size()); });
  for (int i = 0; i < 100; ++i)
    pair.a.peer("b").notify<void(int)>("note", i);
  CHECK(pair.a.call<int()>("b", "count").get() == 100);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("a notification to a peer that is not there throws at once") {
  Pair pair;
  CHECK_THROWS_AS(pair.a.peer("nobody").notify<&calls::nothing>(), NotFound);
}

TEST_CASE("a notification of a function that is not there leaves a line in the callee's log") {
  Pair pair;
  pair.a.peer("b").notify<void()>("missing");
  pair.world.run_for(std::chrono::milliseconds(1));
  CHECK(pair.world.log.contain("a notification from a was dropped"));
  CHECK(pair.world.log.contain("no function 'missing' is exposed on b"));
}

TEST_CASE("a call to many gives one future a peer, in their order") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.b.expose("who", [](int x) { return "b" + std::to_string(x); });
  c.expose("who", [](int x) { return "c" + std::to_string(x); });
  pair.a.expose("who", [](int x) { return "a" + std::to_string(x); });
  pair.b.expose<&calls::add>();
  c.expose<&calls::add>();
  const std::vector<std::string> peers{"c", "b", "nobody"};
  auto sums = pair.a.each(peers).call<&calls::add>(20, 3);
  REQUIRE(sums.size() == 3);
  CHECK(sums[0].get() == 23);
  CHECK(sums[1].get() == 23);
  CHECK_THROWS_AS(sums[2].get(), NotFound);
  const std::vector<int> ranks{c.rank(), pair.b.rank()};
  CHECK(when_all(pair.a.each(ranks).call<&calls::add>(1, 1)).get().size() == 2);
  CHECK(when_all(pair.a.each(ranks).call<int(int, int)>("calls::add", 1, 1)).get().size() == 2);
  CHECK(pair.a.each(std::vector<std::string>()).call<&calls::add>(1, 1).empty());
}

TEST_CASE("a call to many encodes its arguments once") {
  Pair pair;
  const Node c = pair.world.join("c");
  const Node d = pair.world.join("d");
  pair.b.expose<&calls::value_of>();
  c.expose<&calls::value_of>();
  d.expose<&calls::value_of>();
  const std::vector<std::string> peers{"b", "nobody", "c", "d"};
  calls::Counted::encodings = 0;
  auto values = pair.a.each(peers).call<&calls::value_of>(calls::Counted{5});
  CHECK(calls::Counted::encodings == 1);
  CHECK_THROWS_AS(values[1].get(), NotFound);
  for (const std::size_t i : {0U, 2U, 3U})
    CHECK(values[i].get() == 5);
  CHECK(pair.a.call<&calls::value_of>("b", calls::Counted{6}).get() == 6);
  CHECK(calls::Counted::encodings == 2);
}

TEST_CASE("peers are called by rank as well") {
  Pair pair;
  pair.a.expose<&calls::add>();
  pair.b.expose<&calls::add>();
  CHECK(pair.b.rank() == 1);
  CHECK(pair.a.call<&calls::add>(1, 1, 2).get() == 3);
  CHECK(pair.b.call<&calls::add>(0, 1, 2).get() == 3);
  CHECK(pair.b.call<&calls::add>(std::size_t{0}, 1, 2).get() == 3);
  const auto missing = test::outcome(pair.a.call<&calls::add>(7, 1, 2));
  REQUIRE_FALSE(missing);
  CHECK(missing.code() == ErrorCode::not_found);
  CHECK_THAT(missing.message(), Catch::Contains("7"));
  const auto negative = test::outcome(pair.a.call<&calls::add>(-5, 1, 2));
  CHECK(negative.code() == ErrorCode::not_found);
  CHECK_THAT(negative.message(), Catch::Contains("rank -5"));
  CHECK(test::outcome(pair.a.call<&calls::add>("", 1, 2)).code() == ErrorCode::not_found);
}

TEST_CASE("a rank that a node has left is the next one's") {
  test::VirtualWorld world;
  const Node root = world.root();
  std::optional<Node> first(world.join("first"));
  const int rank = first->rank();
  first.reset();
  world.run_for(std::chrono::seconds(1));
  const Node second = world.join("second");
  REQUIRE(second.rank() == rank);
  second.expose("name", [] { return std::string("second"); });
  CHECK(root.call<std::string()>(rank, "name").get() == "second");
  CHECK(second.call<std::string()>(rank, "name").get() == "second");  // chosen by the root
}

TEST_CASE("a node calls itself, by name and by rank, as it calls others") {
  Pair pair;
  pair.a.expose<&calls::add>();
  pair.b.expose<&calls::add>();
  CHECK(pair.a.call<&calls::add>("a", 1, 2).get() == 3);
  CHECK(pair.a.call<&calls::add>(0, 1, 2).get() == 3);
  CHECK(pair.b.call<&calls::add>("b", 1, 2).get() == 3);
  CHECK(pair.b.call<&calls::add>(1, 1, 2).get() == 3);
  // The same path: what would not travel does not come to oneself either.
  CHECK(test::outcome(pair.a.call<int(int)>("a", "calls::add", 1)).code() ==
        ErrorCode::bad_signature);
  CHECK(pair.a.peers().size() == 1);
}

TEST_CASE("coroutines and functions that return futures are answered when these are ready") {
  Pair pair;
  std::vector<Promise<int>> promises;
  pair.b.expose("later", [&promises](int /*x*/) {
    promises.emplace_back();
    return promises.back().get_future();
  });
  pair.b.expose<&calls::add>();
  pair.b.expose("coroutine", [&pair](int x) -> Future<int> {
    const int y = co_await pair.b.call<&calls::add>("b", x, 1);
    const int z = co_await pair.b.call<&calls::add>("b", y, 1);
    co_return 10 * z;
  });
  auto first = pair.a.call<int(int)>("b", "later", 1);
  auto second = pair.a.call<int(int)>("b", "later", 2);
  pair.world.run_for(std::chrono::seconds(1));
  REQUIRE(promises.size() == 2);
  CHECK_FALSE(first.ready());
  promises[1].set_value(22);
  pair.world.run_for(std::chrono::seconds(1));
  CHECK(second.ready());
  CHECK_FALSE(first.ready());
  promises[0].set_value(11);
  CHECK(first.get() == 11);
  CHECK(second.get() == 22);
  CHECK(pair.a.call<int(int)>("b", "coroutine", 1).get() == 30);
}

TEST_CASE("what an asynchronous function's arguments refer to lives until it has answered") {
  Pair pair;
  Promise<void> go;
  auto ready = std::make_shared<Future<void>>(go.get_future());
  pair.b.expose("views",
                [ready](const std::string& text, std::string_view view) -> Future<std::string> {
                  co_await std::move(*ready);
                  co_return text + std::string(view);
                });
  const std::string long_text(1000, 'x');
  auto answer = pair.a.call<std::string(std::string, std::string_view)>(
      "b", "views", long_text, "and a view of the message");
  pair.world.run_for(std::chrono::seconds(1));
  pair.b.expose<&calls::nothing>();
  pair.a.call<&calls::nothing>("b").get();
  go.set_value();
  CHECK(answer.get() == long_text + "and a view of the message");
}

TEST_CASE("a promise that the callee forgets ends the call with BrokenPromise") {
  Pair pair;
  pair.b.expose("forgets", [] { return Promise<int>().get_future(); });
  const auto forgotten = test::outcome(pair.a.call<int()>("b", "forgets"));
  CHECK(forgotten.code() == ErrorCode::broken_promise);
  CHECK_THAT(forgotten.message(), Catch::Contains("'forgets' on b"));
}

TEST_CASE("a thousand calls under way at once are each answered with their own result") {
  Pair pair;
  pair.b.expose<&calls::add>();
  std::vector<Future<int>> sums;
  for (int i = 0; i < 1000; ++i)
    sums.push_back(pair.a.call<&calls::add>("b", i, i));
  for (int i = 0; i < 1000; ++i)
    CHECK(sums[static_cast<std::size_t>(i)].get() == 2 * i);
}

}  // namespace node_test
}  // namespace batchrpc
