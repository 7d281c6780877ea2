#include <catch2/catch.hpp>
#include <iostream>
#include <sstream>

#include "batch/schedule.hpp"
#include "batchrpc/testing.hpp"
#include "long_tests.hpp"

// Random schedules against what must hold for all of them. BATCHRPC_SEEDS=n runs n of them, and
// BATCHRPC_FIRST_SEED=s begins with that seed.
namespace batchrpc {
namespace batch_schedules_test {

/// It happens again, the same way.
std::string what_happens_in(std::uint64_t seed) {
  std::ostringstream log;
  test::Schedule schedule(seed, &log);
  schedule.run();
  return log.str();
}

TEST_CASE("a schedule of one seed happens the same way each time") {
  const auto seeds = static_cast<std::uint64_t>(test::times_on_one_thread(300, 300));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO(seed);
    REQUIRE(what_happens_in(seed) == what_happens_in(seed));
  }
}

TEST_CASE("random schedules: every row completes once, with its own result, within its bounds") {
  std::uint64_t count = 0;
  std::map<std::string, int> happened;
  for_each_seed(1, test::random_programs(), [&](std::uint64_t seed) {
    ++count;
    test::Schedule schedule(seed);
    schedule.run();
    for (const std::string& complaint : schedule.complaints())
      UNSCOPED_INFO(complaint);
    if (!schedule.complaints().empty()) UNSCOPED_INFO(what_happens_in(seed));
    REQUIRE(schedule.complaints().empty());
    for (const auto& [what, times] : schedule.happened())
      happened[what] += times;
  });
  std::cout << count << " schedules:";
  for (const auto& [what, times] : happened)
    std::cout << " " << what << " " << times << ",";
  std::cout << std::endl;
  if (count < 1000) return;
  // What never happens is not tested.
  for (const char* what : {"arrival",
                           "answer",
                           "death",
                           "settings",
                           "batch by idle",
                           "batch by size",
                           "batch by preferred",
                           "batch by min_size",
                           "batch by all",
                           "batch by wait",
                           "batch by flush",
                           "error RemoteError",
                           "error TimedOut",
                           "error Cancelled",
                           "error PeerLost",
                           "error Overloaded",
                           "error ShutDown",
                           "error InvalidArgument",
                           "gave way",
                           "held",
                           "mutex taken",
                           "accumulated early",
                           "accumulated at the end",
                           "accumulation fails",
                           "run again",
                           "drain",
                           "close",
                           "end of the node"}) {
    INFO(what);
    CHECK(happened[what] > 0);
  }
}

}  // namespace batch_schedules_test
}  // namespace batchrpc
