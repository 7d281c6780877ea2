#include "batchrpc/future/when_all.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <list>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "future/several.hpp"

using namespace batchrpc;

namespace when_all_test {

using test::Several;

TEST_CASE("when_all gives the values of a range in its order, when the last is there") {
  Several<int> several(3);
  auto all = when_all(std::move(several.futures));
  several.promises[2].set_value(30);
  several.promises[0].set_value(10);
  CHECK_FALSE(all.ready());
  several.promises[1].set_value(20);
  CHECK(all.get() == std::vector<int>{10, 20, 30});
}

TEST_CASE("when_all of no futures is ready at once") {
  CHECK(when_all(std::vector<Future<int>>()).get().empty());
  CHECK(when_all(std::vector<Future<void>>()).ready());
  CHECK(when_all_settled(std::vector<Future<int>>()).get().empty());
}

TEST_CASE("when_all of futures without values is a future without one") {
  Several<void> several(2);
  Future<void> all = when_all(std::move(several.futures));
  several.promises[0].set_value();
  CHECK_FALSE(all.ready());
  several.promises[1].set_value();
  CHECK_NOTHROW(all.get());
}

TEST_CASE("when_all fails with the first error in the range, when all are through") {
  Several<int> several(3);
  auto all = when_all(std::move(several.futures));
  several.promises[2].set_error(TimedOut("in time the first"));
  several.promises[1].set_error(PeerLost("in the range the first"));
  CHECK_FALSE(all.ready());
  several.promises[0].set_value(1);
  CHECK_THROWS_AS(all.get(), PeerLost);
}

TEST_CASE("when_all moves from an rvalue range and copies from an lvalue's") {
  std::vector<Future<std::unique_ptr<int>>> moved;
  moved.push_back(make_ready_future(std::make_unique<int>(1)));
  auto pointers = when_all(std::move(moved));
  CHECK(*std::move(pointers).get().at(0) == 1);

  Several<std::string> kept(2);
  auto all = when_all(kept.futures);
  auto again = when_all_settled(kept.futures);
  kept.promises[0].set_value("a");
  auto first = std::move(kept.futures[0]);
  CHECK(std::move(first).get() == "a");  // taken before the others are there
  kept.promises[1].set_value("b");
  CHECK(all.get() == std::vector<std::string>{"a", "b"});
  CHECK(again.get().at(1).value() == "b");
  CHECK(kept.futures[1].get() == "b");
}

TEST_CASE("when_all takes any range that can be gone through twice") {
  std::list<Future<int>> list;
  list.push_back(make_ready_future(1));
  CHECK(when_all(list).get() == std::vector<int>{1});
  std::array<Future<bool>, 2> array{make_ready_future(true), make_ready_future(false)};
  CHECK(when_all(array).get() == std::vector<bool>{true, false});
  Future<int> plain[]{make_ready_future(7)};
  CHECK(when_all(plain).get() == std::vector<int>{7});
}

TEST_CASE("when_all refuses an empty future and leaves the others") {
  Several<int> several(2);
  several.futures.emplace_back();
  CHECK_THROWS_AS(when_all(std::move(several.futures)), InvalidArgument);
  CHECK(several.futures[0].valid());
  auto valid = make_ready_future(1);
  CHECK_THROWS_AS(when_all(std::move(valid), Future<int>()), InvalidArgument);
  CHECK(valid.valid());
}

TEST_CASE("when_all of some futures of any types gives a tuple") {
  Promise<int> number;
  Promise<void> nothing;
  const auto text = make_ready_future(std::string("kept"));
  auto all = when_all(number.get_future(), text, nothing.get_future(),
                      make_ready_future(std::make_unique<int>(4)));
  number.set_value(1);
  CHECK_FALSE(all.ready());
  nothing.set_value();
  const auto& [first, second, third, fourth] = all.get();
  CHECK(first == 1);
  CHECK(second == "kept");
  CHECK(third == std::monostate());
  CHECK(*fourth == 4);
  CHECK(text.get() == "kept");
}

TEST_CASE("when_all of some futures waits for all of them before it fails with the first error") {
  Promise<int> first, second, third;
  auto all = when_all(first.get_future(), second.get_future(), third.get_future());
  third.set_error(TimedOut("late"));
  second.set_error(PeerLost("gone"));
  CHECK_FALSE(all.ready());
  first.set_value(1);
  CHECK_THROWS_AS(all.get(), PeerLost);
}

TEST_CASE("when_all_settled gives each result as it came and never fails") {
  Several<int> several(3);
  auto all = when_all_settled(std::move(several.futures));
  several.promises[0].set_value(1);
  several.promises[1].set_error(TimedOut("late"));
  { const auto dropped = std::move(several.promises[2]); }
  const auto& results = all.get();
  CHECK(results.at(0).value() == 1);
  CHECK(results.at(1).code() == ErrorCode::timed_out);
  CHECK(results.at(2).code() == ErrorCode::broken_promise);

  std::vector<Future<void>> voids;
  voids.push_back(make_ready_future());
  voids.push_back(make_failed_future<void>(TimedOut("late")));
  const auto settled = when_all_settled(std::move(voids)).result().value();
  CHECK(settled.at(0).has_value());
  CHECK_FALSE(settled.at(1).has_value());
}

TEST_CASE("A dropped when_all lets go of its sources when they are through") {
  Several<std::shared_ptr<int>> several(2);
  { const auto dropped = when_all(std::move(several.futures)); }
  const auto value = std::make_shared<int>();
  several.promises[0].set_value(value);
  several.promises[1].set_value(value);
  CHECK(value.use_count() == 1);
}

TEST_CASE("when_all of 100000 futures does not recurse") {
  Several<int> several(100'000);
  auto all = when_all(std::move(several.futures));
  for (auto& promise : several.promises)
    promise.set_value(1);
  CHECK(all.get().size() == 100'000);
}

}  // namespace when_all_test
