#include "batchrpc/future/when_n.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/future/promise.hpp"
#include "future/several.hpp"

using namespace batchrpc;

namespace when_n_test {

using test::Several;

TEST_CASE("when_n gives the first values with their indices, in the order in which they came") {
  Several<int> four(4);
  auto two = when_n(four.futures, 2);
  four.promises[3].set_value(30);
  CHECK_FALSE(two.ready());
  four.promises[0].set_error(TimedOut("late"));
  four.promises[1].set_value(10);
  REQUIRE(two.ready());
  four.promises[2].set_value(20);
  const auto values = two.get();
  REQUIRE(values.size() == 2);
  CHECK(values[0].index == 3);
  CHECK(values[0].value == 30);
  CHECK(values[1].index == 1);
  CHECK(values[1].value == 10);
  CHECK(four.futures[2].get() == 20);
}

TEST_CASE("when_n fails with the error after which there cannot be enough values") {
  Several<int> three(3);
  auto two = when_n(std::move(three.futures), 2);
  three.promises[0].set_error(TimedOut("the first"));
  three.promises[1].set_value(1);
  CHECK_FALSE(two.ready());
  three.promises[2].set_error(PeerLost("the second"));
  CHECK_THROWS_AS(two.get(), PeerLost);
}

TEST_CASE("when_n of none is ready at once, and more than there are cannot come") {
  CHECK(when_n(std::vector<Future<int>>(), 0).get().empty());
  CHECK_THROWS_WITH(when_n(std::vector<Future<int>>(), 1).get(),
                    Catch::Contains("1 values of 0 futures"));
  std::vector<Future<int>> with_empty(1);
  CHECK_THROWS_AS(when_n(std::move(with_empty), 1), InvalidArgument);
}

TEST_CASE("when_n takes values that only move, and futures without values") {
  Several<std::unique_ptr<int>> two(2);
  auto one = when_n(std::move(two.futures), 1);
  two.promises[1].set_value(std::make_unique<int>(5));
  CHECK(*one.get()[0].value == 5);
  Several<void> some(3);
  auto first = when_n(std::move(some.futures), 1);
  some.promises[2].set_value();
  CHECK(first.get()[0].index == 2);
}

TEST_CASE("when_all_or_error gives all values in the order of the range") {
  Several<std::string> three(3);
  auto all = when_all_or_error(std::move(three.futures));
  three.promises[2].set_value("c");
  three.promises[0].set_value("a");
  CHECK_FALSE(all.ready());
  three.promises[1].set_value("b");
  CHECK(all.get() == std::vector<std::string>{"a", "b", "c"});
  CHECK(when_all_or_error(std::vector<Future<int>>()).get().empty());
  when_all_or_error(std::vector<Future<void>>()).get();
}

TEST_CASE("when_all_or_error fails with the first error, while others are in flight") {
  Several<int> three(3);
  auto all = when_all_or_error(three.futures);
  three.promises[1].set_value(1);
  three.promises[2].set_error(TimedOut("late"));
  REQUIRE(all.ready());
  CHECK_THROWS_AS(all.get(), TimedOut);
  three.promises[0].set_error(PeerLost("later"));
  CHECK_THROWS_AS(all.get(), TimedOut);
  Several<void> none(2);
  auto nothing = when_all_or_error(std::move(none.futures));
  none.promises[0].set_error(PeerLost("first"));
  CHECK_THROWS_AS(nothing.get(), PeerLost);
}

TEST_CASE("when_n and when_all_or_error take values from many threads at once", "[threads]") {
  for (int round = 0; round < 100; ++round) {
    Several<int> many(8);
    auto five = when_n(many.futures, 5);
    auto all = when_all_or_error(many.futures);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { many.promises[static_cast<std::size_t>(i)].set_value(i); });
    for (const auto& value : five.get())
      CHECK(value.value == static_cast<int>(value.index));
    CHECK(all.get() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
    for (std::thread& thread : threads)
      thread.join();
  }
}

}  // namespace when_n_test
