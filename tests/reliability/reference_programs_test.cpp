#include <catch2/catch.hpp>
#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "batchrpc/testing.hpp"
#include "long_tests.hpp"
#include "reliability/reference_program.hpp"

// The rules of docs/rref-protocol.md, by random programs against a model. BATCHRPC_SEEDS=n runs n
// of them, BATCHRPC_FIRST_SEED=s begins with that one, BATCHRPC_TRACE=1 tells what happens.
namespace batchrpc {
namespace {

std::uint64_t usual_count() {
  const auto count = static_cast<std::uint64_t>(test::times_on_one_thread(10'000, 100'000));
#ifdef __SANITIZE_ADDRESS__
  return count / 10;
#else
  return count;
#endif
}

TEST_CASE("no object goes while there is a handle, and none stays, in random programs") {
  std::map<std::string, std::uint64_t> outcomes;
  std::uint64_t programs = 0;
  for_each_seed(1, usual_count(), [&](std::uint64_t seed) {
    test::ReferenceProgram program(seed);
    program.run();
    ++programs;
    for (const auto& [what, times] : program.outcomes())
      outcomes[what] += times;
    const auto& complaints = program.complaints();
    if (complaints.empty()) return;
    std::string all;
    for (const std::string& complaint : complaints)
      all += "\n  " + complaint;
    throw std::runtime_error(all + "\n");
  });
  std::cout << programs << " random programs of references:";
  for (const auto& [what, times] : outcomes)
    std::cout << " " << what << " " << times << ",";
  std::cout << std::endl;
  if (programs < 1000) return;
  // What never happens is not tested.
  for (const char* what :
       {"value", "objects", "OwnerLost", "RRefExpired", "PeerLost", "TimedOut"}) {
    INFO(what);
    CHECK(outcomes[what] > 0);
  }
}

}  // namespace
}  // namespace batchrpc
