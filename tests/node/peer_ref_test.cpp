#include "batchrpc/call/peer_ref.hpp"

#include <cstdint>
#include <limits>

#include "node/calling_pair.hpp"

namespace batchrpc {
namespace peer_ref_test {

using test::CallingPair;
using test::outcome;

TEST_CASE("a peer is named by any integer, and one beyond an int is nobody") {
  CHECK(PeerRef(0).rank() == 0);
  CHECK(PeerRef(std::uint8_t{7}).rank() == 7);
  CHECK(PeerRef('a').rank() == 'a');
  CHECK(PeerRef(true).rank() == 1);
  CHECK(PeerRef(std::numeric_limits<int>::max()).rank() == std::numeric_limits<int>::max());
  CHECK(PeerRef(-5).rank() == -5);
  CHECK_FALSE(PeerRef(-5).by_rank());
  CHECK_FALSE(PeerRef(std::uint64_t{1} << 32).by_rank());
  CHECK_FALSE(PeerRef((std::int64_t{1} << 32) + 1).by_rank());
  CHECK_FALSE(PeerRef(std::numeric_limits<unsigned>::max()).by_rank());

  const CallingPair pair;
  CHECK(outcome(pair.b.call<&failures::area>(std::size_t{1} << 32, 6, 7)).code() ==
        ErrorCode::not_found);
}

TEST_CASE("a peer is named by what a node tells of it") {
  const CallingPair pair;
  const PeerInfo b = pair.a.wait_for_peer("b").get();
  CHECK(PeerRef(b).name() == "b");
  CHECK(pair.a.call<&failures::area>(b, 6, 7).get() == 42);
  auto areas = pair.a.each(pair.a.peers()).call<&failures::area>(6, 7);
  REQUIRE(areas.size() == 1);
  CHECK(areas[0].get() == 42);
}

}  // namespace peer_ref_test
}  // namespace batchrpc
