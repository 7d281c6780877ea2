#include "transport/spin_gate.hpp"

#include <catch2/catch.hpp>
#include <chrono>

namespace batchrpc::detail {
namespace spin_gate_test {

using std::chrono::milliseconds;

constexpr TimePoint kNow{std::chrono::hours(1)};

int skipped(SpinGate& gate) {
  int count = 0;
  while (!gate.may_spin(kNow))
    ++count;
  return count;
}

TEST_CASE("polls in vain close the gate for longer and longer, hits open it") {
  SpinGate gate;
  CHECK(skipped(gate) == 0);
  gate.hit();
  CHECK(skipped(gate) == 0);
  gate.miss();
  CHECK(skipped(gate) == 1);
  gate.miss();
  CHECK(skipped(gate) == 3);
  gate.hit();
  gate.miss();
  CHECK(skipped(gate) == 3);
  for (int i = 0; i < 5; ++i)
    gate.hit();
  gate.miss();
  CHECK(skipped(gate) == 1);
  for (int i = 0; i < 100; ++i)
    gate.miss();
  CHECK(skipped(gate) == 4095);
}

TEST_CASE("after a preemption none polls for 16 times as long, whatever polls found") {
  SpinGate gate;
  gate.preempted(kNow, milliseconds(3));
  gate.hit();
  CHECK_FALSE(gate.may_spin(kNow));
  CHECK_FALSE(gate.may_spin(kNow + milliseconds(47)));
  CHECK(gate.may_spin(kNow + milliseconds(48)));
}

}  // namespace spin_gate_test
}  // namespace batchrpc::detail
