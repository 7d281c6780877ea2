#include "batch/incoming_transfers.hpp"

#include <catch2/catch.hpp>
#include <memory>

namespace batchrpc::detail {
namespace incoming_transfers_test {

struct Gate final : TransferGate {
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return 0; }
  void open() noexcept override {}
};

IncomingTransfer of(std::size_t bytes) {
  return {.bytes = bytes, .gate = std::make_shared<Gate>()};
}

TEST_CASE("transfers come while there is room, and one that is larger than all of it comes alone") {
  const IncomingTransfers::Room room{.max_bytes = 100};
  IncomingTransfers transfers;
  auto large = of(150);
  transfers.begin(large, nullptr, room);
  CHECK_FALSE(large.held);
  CHECK(transfers.bytes() == 150);
  auto next = of(60);
  transfers.begin(next, nullptr, room);
  CHECK(next.held);
  auto small = of(1);
  transfers.begin(small, nullptr, room);
  CHECK(small.held);  // it does not overtake
  IncomingTransfers::Gates gates;
  transfers.let_come(room, gates);
  CHECK(gates.empty());
  transfers.end(large);
  CHECK(large.over);
  transfers.let_come(room, gates);
  REQUIRE(gates.size() == 2);
  CHECK(gates[0] == next.gate);
  CHECK(gates[1] == small.gate);
  CHECK_FALSE(next.held);
  CHECK(transfers.bytes() == 61);
  CHECK_FALSE(transfers.any_held());
}

TEST_CASE("one that is held and ends is waited for no more") {
  const IncomingTransfers::Room room{.max_bytes = 10};
  IncomingTransfers transfers;
  auto first = of(10);
  auto second = of(10);
  transfers.begin(first, nullptr, room);
  transfers.begin(second, nullptr, room);
  REQUIRE(second.held);
  transfers.end(second);
  CHECK_FALSE(transfers.any_held());
  CHECK(transfers.bytes() == 10);
  transfers.end(first);
  CHECK_FALSE(transfers.any_coming());
  CHECK(transfers.bytes() == 0);
}

TEST_CASE("of a reducer two come, or are here, at a time") {
  IncomingTransfers::Room room{.one_by_one = true, .max_bytes = 1000};
  IncomingTransfers transfers;
  auto first = of(1);
  auto second = of(1);
  auto third = of(1);
  for (auto* transfer : {&first, &second, &third})
    transfers.begin(*transfer, nullptr, room);
  CHECK_FALSE(second.held);
  CHECK(third.held);
  transfers.end(first);
  room.to_accumulate = 1;  // it is here
  IncomingTransfers::Gates gates;
  transfers.let_come(room, gates);
  CHECK(gates.empty());
  room.to_accumulate = 0;
  transfers.let_come(room, gates);
  CHECK(gates.size() == 1);
}

TEST_CASE("all gates are given out at the end") {
  const IncomingTransfers::Room room{.max_bytes = 1};
  IncomingTransfers transfers;
  auto first = of(1);
  auto second = of(1);
  transfers.begin(first, nullptr, room);
  transfers.begin(second, nullptr, room);
  CHECK(transfers.release_held() == IncomingTransfers::Gates{second.gate});
  CHECK_FALSE(transfers.any_held());
}

}  // namespace incoming_transfers_test
}  // namespace batchrpc::detail
