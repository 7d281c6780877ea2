#include <catch2/catch.hpp>

#include "reliability/reference_program.hpp"
#include "reliability/run_programs.hpp"

// The rules of docs/rref-protocol.md, by random programs against a model. BATCHRPC_SEEDS=n runs n
// of them, BATCHRPC_FIRST_SEED=s begins with that one, BATCHRPC_TRACE=1 tells what happens.
namespace batchrpc {
namespace reference_programs_test {

TEST_CASE("no object goes while there is a handle, and none stays, in random programs") {
  auto outcomes = test::run_programs<test::ReferenceProgram>("programs of references");
  if (outcomes.empty()) return;
  // What never happens is not tested.
  for (const char* what :
       {"value", "objects", "repeated", "OwnerLost", "RRefExpired", "PeerLost", "TimedOut"}) {
    INFO(what);
    CHECK(outcomes[what] > 0);
  }
}

}  // namespace reference_programs_test
}  // namespace batchrpc
