#include "batch/incoming_transfers.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>

namespace batchrpc::detail {
namespace incoming_transfers_test {

using namespace std::chrono_literals;

struct Gate final : TransferGate {
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t received() const noexcept override { return come; }
  std::uint64_t come = 0;
  void open() noexcept override {}
};

IncomingTransfer of(std::size_t bytes, std::shared_ptr<const PeerIdentity> caller = nullptr) {
  return {.bytes = bytes, .gate = std::make_shared<Gate>(), .caller = std::move(caller)};
}

TEST_CASE("transfers come while there is room, and one that is larger than all of it comes alone") {
  const IncomingTransfers::Room room{.max_bytes = 100};
  IncomingTransfers transfers;
  auto large = of(150);
  transfers.begin(large, room);
  CHECK_FALSE(large.held);
  auto next = of(60);
  transfers.begin(next, room);
  CHECK(next.held);
  auto small = of(1);
  transfers.begin(small, room);
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
  CHECK_FALSE(transfers.any_held());
}

TEST_CASE("one that is held and ends is waited for no more") {
  const IncomingTransfers::Room room{.max_bytes = 10};
  IncomingTransfers transfers;
  auto first = of(10);
  auto second = of(10);
  transfers.begin(first, room);
  transfers.begin(second, room);
  REQUIRE(second.held);
  transfers.end(second);
  CHECK_FALSE(transfers.any_held());
  transfers.end(first);
  CHECK_FALSE(transfers.any_moving(room));
}

TEST_CASE("of a reducer two come, or are here, at a time") {
  IncomingTransfers::Room room{.one_by_one = true, .max_bytes = 1000};
  IncomingTransfers transfers;
  auto first = of(1);
  auto second = of(1);
  auto third = of(1);
  for (auto* transfer : {&first, &second, &third})
    transfers.begin(*transfer, room);
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

TEST_CASE("a reducer's places are shared, so that no caller waits for another's calls for long") {
  IncomingTransfers::Room room{.one_by_one = true, .max_bytes = 1000, .stalls_after = 5s};
  const auto mallory = std::make_shared<const PeerIdentity>();
  IncomingTransfers transfers;
  auto one = of(1, mallory);
  auto other = of(1, mallory);
  transfers.begin(one, room);
  transfers.begin(other, room);
  auto bobs = of(1, std::make_shared<const PeerIdentity>());
  transfers.begin(bobs, room);
  CHECK_FALSE(bobs.held);
  auto carols = of(1, std::make_shared<const PeerIdentity>());
  transfers.begin(carols, room);
  CHECK(carols.held);
  room.now += 5s;  // neither Mallory's come, nor Bob's
  IncomingTransfers::Gates gates;
  transfers.let_come(room, gates);
  CHECK(gates.size() == 1);
  CHECK(bobs.stalled);
  for (auto* transfer : {&one, &other, &bobs, &carols})
    transfers.end(*transfer);
  CHECK(transfers.is_idle());
}

TEST_CASE("a call stalls when less than 64 KiB of it come in a time, and others do not") {
  IncomingTransfers::Room room{.max_bytes = 1000, .stalls_after = 5s};
  IncomingTransfers transfers;
  auto quick = of(1);
  auto slow = of(1);
  transfers.begin(quick, room);
  room.now += 1s;
  transfers.begin(slow, room);
  CHECK(transfers.next_stall(room) == TimePoint(5s));
  static_cast<Gate&>(*quick.gate).come = 64 * 1024;
  static_cast<Gate&>(*slow.gate).come = 64 * 1024 - 1;
  room.now = TimePoint(7s);
  CHECK(transfers.any_moving(room));
  CHECK(slow.stalled);
  CHECK_FALSE(quick.stalled);
  CHECK(transfers.next_stall(room) == TimePoint(12s));
  room.now = TimePoint(12s);
  CHECK_FALSE(transfers.any_moving(room));
  CHECK(quick.stalled);
}

TEST_CASE("all gates are given out at the end") {
  const IncomingTransfers::Room room{.max_bytes = 1};
  IncomingTransfers transfers;
  auto first = of(1);
  auto second = of(1);
  transfers.begin(first, room);
  transfers.begin(second, room);
  CHECK(transfers.release_held() == IncomingTransfers::Gates{second.gate});
  CHECK_FALSE(transfers.any_held());
}

}  // namespace incoming_transfers_test
}  // namespace batchrpc::detail
