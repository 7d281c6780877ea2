#include "batch/batch_closing.hpp"

#include <catch2/catch.hpp>

namespace batchrpc::detail {
namespace batch_closing_test {

TEST_CASE("who waits for the end is told once nothing is left and all that was dropped was told") {
  BatchClosing closing;
  auto first = closing.wait();
  CHECK(closing.take_waiters(true).empty());  // it is open
  closing.close("it is closed");
  closing.close("again");
  CHECK(closing.why() == "it is closed");
  auto second = closing.wait();
  CHECK(closing.take_waiters(false).empty());
  closing.drop_begins();
  CHECK(closing.take_waiters(true).empty());
  closing.drop_ends();
  auto waiters = closing.take_waiters(true);
  REQUIRE(waiters.size() == 2);
  for (auto& waiter : waiters)
    waiter.set_value();
  CHECK(first.ready());
  CHECK(second.ready());
  CHECK(closing.take_waiters(true).empty());
}

}  // namespace batch_closing_test
}  // namespace batchrpc::detail
