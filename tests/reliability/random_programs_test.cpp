#include <catch2/catch.hpp>

#include "reliability/random_program.hpp"
#include "reliability/run_programs.hpp"

// Promises 1, 3, 4 and 5, by random programs against a model. BATCHRPC_SEEDS=n runs n of them,
// BATCHRPC_FIRST_SEED=s begins with that one, BATCHRPC_TRACE=1 tells what happens.
namespace batchrpc {
namespace random_programs_test {

TEST_CASE("the promises hold for random programs, whatever the network does") {
  auto outcomes = test::run_programs<test::RandomProgram>("programs");
  if (outcomes.empty()) return;
  // What never happens is not tested.
  for (const char* what :
       {"value", "RemoteError", "TimedOut", "NotSent", "PeerLost", "Overloaded", "Cancelled"}) {
    INFO(what);
    CHECK(outcomes[what] > 0);
  }
}

}  // namespace random_programs_test
}  // namespace batchrpc
