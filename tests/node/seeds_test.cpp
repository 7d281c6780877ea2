#include "batchrpc/testing/seeds.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace batchrpc::test {
namespace seeds_test {

/// Variables of the environment for the time of a scope: the ones there may be are put back.
class Environment {
 public:
  Environment(const char* first, const char* count) {
    set("BATCHRPC_FIRST_SEED", first, first_);
    set("BATCHRPC_SEEDS", count, count_);
  }
  ~Environment() {
    put_back("BATCHRPC_FIRST_SEED", first_);
    put_back("BATCHRPC_SEEDS", count_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const char* name, const char* value, std::optional<std::string>& before) {
    if (const char* const found = std::getenv(name)) before = found;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  static void put_back(const char* name, const std::optional<std::string>& before) {
    before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name);
  }

  std::optional<std::string> first_;
  std::optional<std::string> count_;
};

std::vector<std::uint64_t> seeds(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for_each_seed(first, count, [&](std::uint64_t seed) { all.push_back(seed); });
  return all;
}

TEST_CASE("a test runs with each seed, or those that the environment says") {
  {
    const Environment none(nullptr, nullptr);
    CHECK(seeds(5, 3) == std::vector<std::uint64_t>{5, 6, 7});
    CHECK(seeds(5, 0).empty());
  }
  {
    const Environment count(nullptr, "2");
    CHECK(seeds(5, 3) == std::vector<std::uint64_t>{5, 6});
  }
  {
    const Environment both("17", "1");
    CHECK(seeds(5, 3) == std::vector<std::uint64_t>{17});
  }
  const Environment wrong("17x", nullptr);
  CHECK_THROWS_WITH(seeds(5, 3), "BATCHRPC_FIRST_SEED=17x: not a number");
}

TEST_CASE("a failing seed is named, with the command that repeats it") {
  const Environment none(nullptr, nullptr);
  int runs = 0;
  try {
    for_each_seed(1, 10, [&](std::uint64_t seed) {
      ++runs;
      if (seed == 4) throw std::runtime_error("two and two is five");
    });
    FAIL("no seed failed");
  } catch (const SeedFailed& failed) {
    CHECK_THAT(failed.what(), Catch::StartsWith("seed 4: two and two is five; repeat it with: "
                                                "BATCHRPC_FIRST_SEED=4 BATCHRPC_SEEDS=1 "));
    CHECK_THAT(failed.what(), Catch::Contains("test_node"));
    CHECK_THROWS_WITH(std::rethrow_if_nested(failed), "two and two is five");
  }
  CHECK(runs == 4);
  CHECK_THROWS_AS(for_each_seed(1, 1, [](std::uint64_t) { throw 1; }), int);
}

}  // namespace seeds_test
}  // namespace batchrpc::test
