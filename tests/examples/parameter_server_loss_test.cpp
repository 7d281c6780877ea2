#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "parameter_server/loss_watch.hpp"

namespace batchrpc_examples {
namespace parameter_server_loss_test {

TEST_CASE("The first loss that is no finite number is told, with its trainer and iteration") {
  const auto [loss, word] = GENERATE(table<double, std::string>(
      {{std::nan(""), "NaN"}, {HUGE_VAL, "infinite"}, {-HUGE_VAL, "infinite"}}));
  CAPTURE(loss);
  std::vector<std::string> told;
  LossWatch watch([&](const std::string& notice) { told.push_back(notice); });
  watch.reported("trainer0", {.iteration = 2, .loss = 1e300});
  CHECK(told.empty());
  watch.reported("trainer1", {.iteration = 3, .loss = loss});
  watch.reported("trainer0", {.iteration = 4, .loss = loss});
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("trainer1 in iteration 3 is " + word));
}

}  // namespace parameter_server_loss_test
}  // namespace batchrpc_examples
