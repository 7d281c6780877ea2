#include "node/call_order.hpp"

#include <catch2/catch.hpp>

namespace batchrpc {
namespace {

constexpr CallOrder::Object kFirst{1, 1};
constexpr CallOrder::Object kSecond{1, 2};

CallOrder::Call call(Word mark) { return {{{mark}, {}}, std::nullopt}; }

/// The marks of the calls that may start now.
std::vector<Word> taken(CallOrder& order, const CallOrder::Object& object) {
  std::vector<Word> marks;
  while (const auto next = order.take(object))
    marks.push_back(next->whole.words.front());
  return marks;
}

TEST_CASE("calls behind one that is coming in wait for it, those of other objects do not") {
  CallOrder order;
  CHECK(order.empty());
  order.reserve(kFirst, 7, nullptr);
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
    order.reserve(kFirst, id, nullptr);
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
  order.reserve(kFirst, 7, nullptr);
  order.fill(kFirst, 7, call(1));
  const auto running = order.take(kFirst);
  REQUIRE(running);
  CHECK(order.has(kFirst));
  CHECK_FALSE(order.take(kFirst));
  CHECK(order.empty());
}

TEST_CASE("places of calls that never come are given up, and what announced them ends") {
  CallOrder order;
  auto announcement = std::make_shared<int>(1);
  order.reserve(kFirst, 7, announcement);
  order.append(kFirst, call(1));
  order.reserve(kFirst, 8, nullptr);
  order.append(kFirst, call(2));
  order.reserve(kSecond, 9, nullptr);
  CHECK(order.give_up() == std::vector<CallOrder::Object>{kFirst, kSecond});
  CHECK(announcement.use_count() == 1);
  CHECK(taken(order, kFirst) == std::vector<Word>{1, 2});
  CHECK(taken(order, kSecond).empty());
  CHECK(order.empty());
}

}  // namespace
}  // namespace batchrpc
