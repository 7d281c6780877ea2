#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "session/in_flight_calls.hpp"

namespace batchrpc {
namespace kept_calls_test {

using detail::CallState;

detail::Ref<CallState> make_call(std::uint64_t id) {
  return detail::Ref<CallState>(new CallState(id, detail::CallArguments(), false, nullptr));
}

TEST_CASE("calls that are kept are found by their ids, however many come and go") {
  InFlightCalls kept;
  std::vector<detail::Ref<CallState>> calls;
  constexpr std::uint64_t kCalls = 10'000;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    calls.push_back(make_call(i << 20));  // alike in their low bits
    REQUIRE(kept.add(*calls.back()));
  }
  for (std::uint64_t i = 0; i < kCalls; i += 2)
    kept.remove(*calls[i]);
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    const auto found = kept.take(i << 20);
    REQUIRE(found == (i % 2 == 0 ? nullptr : calls[i]));
  }
  CHECK(kept.take(0) == nullptr);
  REQUIRE(kept.add(*calls[0]));
  CHECK(kept.take_next() == nullptr);
  kept.close();
  CHECK(kept.take(0) == nullptr);
  CHECK(kept.take_next() == calls[0]);
  CHECK(kept.take_next() == nullptr);
  kept.remove(*calls[0]);
  CHECK_FALSE(kept.add(*calls[1]));
}

TEST_CASE("of two calls with one id each is removed by itself") {
  InFlightCalls kept;
  const auto one = make_call(7);
  const auto other = make_call(7);
  const auto stranger = make_call(7);
  REQUIRE(kept.add(*one));
  REQUIRE(kept.add(*other));
  kept.remove(*stranger);
  kept.remove(*other);
  CHECK(kept.take(7) == one);
  CHECK(kept.take(7) == nullptr);
}

TEST_CASE("a closed table gives out its calls as they came, except those that are answered first") {
  InFlightCalls kept;
  std::vector<detail::Ref<CallState>> calls;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    calls.push_back(make_call(i * 7919 % 1000));
    REQUIRE(kept.add(*calls.back()));
  }
  CHECK(kept.all() == calls);
  kept.close();
  kept.close();
  for (const auto& call : calls) {
    if (call->id % 3 == 0) kept.remove(*call);
  }
  for (const auto& call : calls) {
    if (call->id % 3 != 0) REQUIRE(kept.take_next() == call);
  }
  CHECK(kept.take_next() == nullptr);
}

TEST_CASE("many calls with one id are removed in any order as quickly as others") {
  InFlightCalls kept;
  std::vector<detail::Ref<CallState>> calls;
  for (int i = 0; i < 100'000; ++i) {
    calls.push_back(make_call(7));
    REQUIRE(kept.add(*calls.back()));
  }
  for (const auto& call : calls)  // the first is the last in its bucket: quadratic time is minutes
    kept.remove(*call);
  CHECK(kept.take(7) == nullptr);
}

TEST_CASE("what a burst of calls has taken is given back with the last of them") {
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  InFlightCalls kept;
  std::vector<detail::Ref<CallState>> calls;
  for (std::uint64_t id = 0; id < 100'000; ++id)
    calls.push_back(make_call(id));
  const auto before = allocated();
  for (const auto& call : calls)
    REQUIRE(kept.add(*call));
  for (const auto& call : calls)
    kept.remove(*call);
  CHECK(allocated() <= before + (std::size_t{64} << 10));
}

}  // namespace kept_calls_test
}  // namespace batchrpc
