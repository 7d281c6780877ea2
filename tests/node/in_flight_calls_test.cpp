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
  CHECK(kept.close() == std::vector{calls[0]});
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
