#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "batch/schedule.hpp"
#include "long_tests.hpp"

// Random schedules against what must hold for all of them. BATCHRPC_SCHEDULES=n runs n of them, and
// BATCHRPC_SCHEDULE_SEED=s begins with that seed.
namespace batchrpc {
namespace batch_schedules_test {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT: before any thread
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

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

TEST_CASE(
    "10^4 random schedules: every row completes once, with its own result, within its bounds") {
  const std::uint64_t first = number_of("BATCHRPC_SCHEDULE_SEED", 1);
  const auto usual = static_cast<std::uint64_t>(test::times_on_one_thread(10'000, 100'000));
  const std::uint64_t count = number_of("BATCHRPC_SCHEDULES", usual);
  std::map<std::string, int> happened;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    test::Schedule schedule(seed);
    schedule.run();
    for (const std::string& complaint : schedule.complaints())
      UNSCOPED_INFO(complaint);
    if (!schedule.complaints().empty()) UNSCOPED_INFO(what_happens_in(seed));
    INFO("BATCHRPC_SCHEDULE_SEED=" << seed << " BATCHRPC_SCHEDULES=1");
    REQUIRE(schedule.complaints().empty());
    for (const auto& [what, times] : schedule.happened())
      happened[what] += times;
  }
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
