#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// A row that makes the handler fail is found, and fails alone.
namespace batchrpc {
namespace {

using test::outcome;

/// A batcher whose handler fails on negative rows, on a node in virtual time.
struct Poison {
  explicit Poison(Isolate isolate, std::vector<std::size_t> preferred = {})
      : batcher({.max_size = 64,
                 .min_size = 64,
                 .preferred_sizes = std::move(preferred),
                 .isolate = isolate},
                [this](std::vector<int> xs) {
                  ++runs;
                  for (const int x : xs) {
                    if (x < 0) throw std::domain_error("row " + std::to_string(x));
                  }
                  for (int& x : xs)
                    x *= 3;
                  return xs;
                }) {
    node.expose("f", batcher);
  }
  test::VirtualWorld world;
  Node node = world.root();
  int runs = 0;
  Batcher<int(int)> batcher;
};

TEST_CASE("a poisoned row fails alone, and the other 63 have their results, after 13 runs") {
  for (int poisoned = 0; poisoned < 64; ++poisoned) {
    Poison p(Isolate::bisect);
    std::vector<Future<int>> rows;
    for (int i = 0; i < 64; ++i)
      rows.push_back(p.batcher(i == poisoned ? -i - 1 : i));
    for (int i = 0; i < 64; ++i) {
      const auto result = outcome(std::move(rows[static_cast<std::size_t>(i)]));
      if (i == poisoned) {
        REQUIRE(result.message() == "row " + std::to_string(-i - 1));
      } else {
        REQUIRE(result.value() == 3 * i);
      }
    }
    REQUIRE(p.runs <= 13);
    REQUIRE(p.batcher.statistics().handler_runs == static_cast<std::uint64_t>(p.runs));
    REQUIRE(p.batcher.statistics().answered == 63);
    REQUIRE(p.batcher.statistics().failed == 1);
  }
}

TEST_CASE(
    "several poisoned rows fail, each with its own error, and halves are padded as batches are") {
  Poison p(Isolate::bisect, {1, 8, 64});
  std::vector<Future<int>> rows;
  for (int i = 0; i < 64; ++i)
    rows.push_back(p.batcher(i % 20 == 7 ? -i : i));
  for (int i = 0; i < 64; ++i) {
    const auto result = outcome(std::move(rows[static_cast<std::size_t>(i)]));
    if (i % 20 == 7) {
      CHECK(result.message() == "row " + std::to_string(-i));
    } else {
      CHECK(result.value() == 3 * i);
    }
  }
}

TEST_CASE("without isolation a poisoned row fails its batch") {
  Poison p(Isolate::none);
  std::vector<Future<int>> rows;
  for (int i = 0; i < 64; ++i)
    rows.push_back(p.batcher(i == 5 ? -5 : i));
  for (auto& row : rows)
    CHECK(outcome(std::move(row)).message() == "row -5");
  CHECK(p.runs == 1);
}

}  // namespace
}  // namespace batchrpc
