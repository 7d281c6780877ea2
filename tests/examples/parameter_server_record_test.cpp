#include "parameter_server/run_record.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <vector>

namespace batchrpc_examples {
namespace parameter_server_record_test {

struct Lines {
  std::vector<IterationRecord> all;
  auto take() {
    return [this](const IterationRecord& record) { all.push_back(record); };
  }
};

TEST_CASE("An iteration is told when all who sent a gradient have reported") {
  Lines lines;
  RunRecord record(10, lines.take());
  record.updated({.iteration = 0, .finished = 1, .gradients = 2});
  record.reported({.iteration = 0, .loss = 1, .seconds = 3});
  CHECK(lines.all.empty());
  record.reported({.iteration = 0, .loss = 2, .seconds = 5});
  REQUIRE(lines.all.size() == 1);
  CHECK(lines.all[0].loss == 1.5);
  CHECK(lines.all[0].seconds == 5);
  CHECK(lines.all[0].bytes == 20);
}

TEST_CASE("The line of an iteration counts its trainers") {
  CHECK_THAT(progress_line({.trainers = 1}, false), Catch::Contains(" | 1 trainer | "));
  CHECK_THAT(progress_line({.trainers = 2}, false), Catch::Contains(" | 2 trainers | "));
}

TEST_CASE("The line of an iteration shows a loss of NaN without a sign") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double loss : {nan, -nan})
    CHECK_THAT(progress_line({.loss = loss}, false), Catch::Contains(" | loss nan | "));
}

TEST_CASE("An iteration of a trainer that was lost is told with the next one") {
  Lines lines;
  RunRecord record(10, lines.take());
  record.updated({.iteration = 0, .finished = 1, .gradients = 2});
  record.reported({.iteration = 0});
  record.updated({.iteration = 1, .finished = 2, .gradients = 1});
  record.reported({.iteration = 1});
  REQUIRE(lines.all.size() == 2);
  CHECK(lines.all[0].trainers == 1);
  CHECK(record.finish().size() == 2);
  CHECK(lines.all.size() == 2);
}

TEST_CASE("An iteration that trainers have each for itself is told when the last has had it") {
  Lines lines;
  RunRecord record(10, lines.take());
  for (const std::int64_t iteration : {0, 1}) {
    record.updated({.iteration = iteration, .finished = 0, .gradients = 1});
    record.reported({.iteration = iteration});
  }
  CHECK(lines.all.empty());
  record.updated({.iteration = 0, .finished = 1, .gradients = 1, .staleness = 2});
  record.reported({.iteration = 0});
  REQUIRE(lines.all.size() == 1);
  CHECK(lines.all[0].trainers == 2);
  CHECK(lines.all[0].mean_staleness == 1);
  CHECK(record.finish().size() == 2);
  CHECK(lines.all.size() == 2);
}

}  // namespace parameter_server_record_test
}  // namespace batchrpc_examples
