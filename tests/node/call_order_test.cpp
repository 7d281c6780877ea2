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
  order.append(kFirst, 2, call(2));
  CHECK(taken(order, kFirst).empty());
  CHECK(taken(order, kSecond).empty());
  order.fill(7, call(1));
  CHECK(taken(order, kFirst) == std::vector<Word>{1, 2});
  CHECK(order.empty());
}

TEST_CASE("of several calls that are coming in, the first that is there waits for the others") {
  CallOrder order;
  for (const std::uint64_t id : {7U, 8U, 9U})
    order.reserve(kFirst, id);
  order.fill(8, call(8));
  CHECK(taken(order, kFirst).empty());
  order.fill(7, call(7));
  CHECK(taken(order, kFirst) == std::vector<Word>{7, 8});
  CHECK(order.has(kFirst));
  order.fill(9, call(9));
  CHECK(taken(order, kFirst) == std::vector<Word>{9});
  CHECK(order.empty());
}

TEST_CASE("a call that comes while the last one starts is behind it") {
  CallOrder order;
  order.reserve(kFirst, 7);
  order.fill(7, call(1));
  const auto running = order.take(kFirst);
  REQUIRE(running);
  CHECK(order.has(kFirst));
  CHECK_FALSE(order.take(kFirst));
  CHECK(order.empty());
}

TEST_CASE("places of calls that never come are given up") {
  CallOrder order;
  order.reserve(kFirst, 7);
  order.append(kFirst, 1, call(1));
  order.reserve(kFirst, 8);
  order.append(kFirst, 2, call(2));
  order.reserve(kSecond, 9);
  CHECK(order.give_up_first(kFirst));
  CHECK_FALSE(order.give_up_first(kFirst));  // the call 1 is complete
  CHECK(order.take(kFirst));
  CHECK(order.give_up_first(kFirst));
  CHECK(order.any_key() == kFirst);
  CHECK(order.give_up_first(kSecond));
  CHECK(taken(order, kFirst) == std::vector<Word>{2});
  CHECK(order.any_key() == kSecond);
  CHECK(taken(order, kSecond).empty());
  CHECK_FALSE(order.any_key());
  CHECK(order.empty());
}

TEST_CASE("the place of one call that never comes is given up, and those of others stay") {
  CallOrder order;
  order.give_up(7);
  for (const std::uint64_t id : {7U, 8U})
    order.reserve(kFirst, id);
  order.append(kFirst, 9, call(9));
  order.give_up(7);
  order.give_up(99);
  CHECK(taken(order, kFirst).empty());
  order.fill(8, call(8));
  CHECK(taken(order, kFirst) == std::vector<Word>{8, 9});
  CHECK(order.empty());
}

TEST_CASE("a cancelled call is found by its id, however many wait, in whichever line") {
  CallOrder order;
  constexpr std::uint64_t kCalls = 100'000;
  order.reserve(kFirst, 0);
  order.reserve(kSecond, 0);
  for (std::uint64_t id = 1; id <= kCalls; ++id)
    order.append(id % 2 == 0 ? kFirst : kSecond, id, call(id));
  CHECK_FALSE(order.remove(0));  // it is still coming in
  CHECK_FALSE(order.remove(kCalls + 1));
  for (std::uint64_t id = kCalls; id > 2; --id) {  // in quadratic time it would take minutes
    const auto removed = order.remove(id);
    REQUIRE(removed);
    REQUIRE(removed->words.front() == id);
  }
  CHECK_FALSE(order.remove(3));
  order.fill(0, call(10));
  order.fill(0, call(20));
  CHECK(taken(order, kFirst).size() == 2);
  CHECK(taken(order, kSecond).size() == 2);
  CHECK(order.empty());
  CHECK(order.waiting_bytes() == 0);
}

TEST_CASE("of calls that a peer gives one id, the first is cancelled first") {
  CallOrder order;
  order.reserve(kFirst, 7);
  constexpr Word kCalls = 50'000;
  for (Word mark = 1; mark <= kCalls; ++mark)
    order.append(kFirst, 7, call(mark));
  CHECK(order.remove(7)->words.front() == 1);
  order.fill(7, call(0));
  std::vector<Word> marks = taken(order, kFirst);  // in quadratic time it would take a minute
  CHECK(marks.size() == kCalls);
  CHECK(order.empty());
}

}  // namespace call_order_test
}  // namespace batchrpc
