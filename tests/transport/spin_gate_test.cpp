#include "transport/spin_gate.hpp"

#include <catch2/catch.hpp>

namespace batchrpc::detail {
namespace {

int skipped(SpinGate& gate) {
  int count = 0;
  while (!gate.may_spin())
    ++count;
  return count;
}

TEST_CASE("polls in vain and preemption close the gate for longer and longer, hits open it") {
  SpinGate gate;
  CHECK(skipped(gate) == 0);
  gate.hit();
  CHECK(skipped(gate) == 0);
  gate.miss();
  CHECK(skipped(gate) == 1);
  gate.miss();
  CHECK(skipped(gate) == 3);
  gate.preempted();
  CHECK(skipped(gate) == 31);
  for (int i = 0; i < 5; ++i)
    gate.hit();
  gate.miss();
  CHECK(skipped(gate) == 1);
  for (int i = 0; i < 100; ++i)
    gate.preempted();
  CHECK(skipped(gate) == 4095);
}

}  // namespace
}  // namespace batchrpc::detail
