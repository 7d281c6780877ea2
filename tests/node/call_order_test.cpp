#include "session/call_order.hpp"

#include <catch2/catch.hpp>

namespace batchrpc {
namespace call_order_test {

constexpr CallOrder::Key kFirst{1, 1, 1};
constexpr CallOrder::Key kSecond{1, 1, 2};

CallOrder::Call call(Word mark) { return {.words = {mark}}; }

/// The marks of the calls that may start now.
std::vector<Word> taken(CallOrder& order, const CallOrder::Key& object) {
  std::vector<Word> marks;
  while (const auto next = order.take(object))
    marks.push_back(next->words.front());
  return marks;
}

TEST_CASE("calls behind one that is coming in wait for it, those of other objects do not") {
  CallOrder order;
  CHECK(order.empty());
  order.reserve(kFirst, 7);
  CHECK(order.has(kFirst));
  CHECK_FALSE(order.has(kSecond));
  order.append(kFirst, call(2));
  CHECK(taken(order, kFirst).empty());
  CHECK(taken(order, kSecond).empty());
  order.fill(kFirst, 7, call(1));
  CHECK(taken(order, kFirst) == std::vector<Word>{1, 2});
  CHECK(order.empty());
}

TEST_CASE("of several calls that are coming in, the first that is there waits for the others") {
  CallOrder order;
  for (const std::uint64_t id : {7U, 8U, 9U})
    order.reserve(kFirst, id);
  order.fill(kFirst, 8, call(8));
  CHECK(taken(order, kFirst).empty());
  order.fill(kFirst, 7, call(7));
  CHECK(taken(order, kFirst) == std::vector<Word>{7, 8});
  CHECK(order.has(kFirst));
  order.fill(kFirst, 9, call(9));
  CHECK(taken(order, kFirst) == std::vector<Word>{9});
  CHECK(order.empty());
}

TEST_CASE("a call that comes while the last one starts is behind it") {
  CallOrder order;
  order.reserve(kFirst, 7);
  order.fill(kFirst, 7, call(1));
  const auto running = order.take(kFirst);
  REQUIRE(running);
  CHECK(order.has(kFirst));
  CHECK_FALSE(order.take(kFirst));
  CHECK(order.empty());
}

TEST_CASE("places of calls that never come are given up") {
  CallOrder order;
  order.reserve(kFirst, 7);
  order.append(kFirst, call(1));
  order.reserve(kFirst, 8);
  order.append(kFirst, call(2));
  order.reserve(kSecond, 9);
  CHECK(order.give_up() == std::vector<CallOrder::Key>{kFirst, kSecond});
  CHECK(taken(order, kFirst) == std::vector<Word>{1, 2});
  CHECK(taken(order, kSecond).empty());
  CHECK(order.empty());
}

TEST_CASE("the place of one call that never comes is given up, and those of others stay") {
  CallOrder order;
  order.give_up(kFirst, 7);
  for (const std::uint64_t id : {7U, 8U})
    order.reserve(kFirst, id);
  order.append(kFirst, call(9));
  order.give_up(kFirst, 7);
  order.give_up(kFirst, 99);
  order.give_up(kSecond, 8);
  CHECK(taken(order, kFirst).empty());
  order.fill(kFirst, 8, call(8));
  CHECK(taken(order, kFirst) == std::vector<Word>{8, 9});
  CHECK(order.empty());
}

}  // namespace call_order_test
}  // namespace batchrpc
