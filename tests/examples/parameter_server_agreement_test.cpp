#include "parameter_server/agreement.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace batchrpc_examples {
namespace parameter_server_agreement_test {

ParameterServerOptions two_servers() {
  ParameterServerOptions options;
  options.servers = 2;
  options.iterations = 6;
  options.checkpoint = "folder";
  return options;
}

TEST_CASE("All parameter servers hear from which iteration they go on when all have told") {
  Agreement agreement(two_servers());
  const auto first = agreement.notify("server0", {.iterations = {3, 4}, .error = {}});
  CHECK_FALSE(first.ready());
  CHECK(agreement.missing() == std::vector<std::string>{"server1"});
  const auto second = agreement.notify("server1", {.iterations = {2, 3}, .error = {}});
  CHECK(first.get().iteration == 3);
  CHECK(second.get().iteration == 3);
  CHECK(first.get().error.empty());
}

TEST_CASE("Parameter servers that have nothing left to do hear so by the iteration") {
  Agreement agreement(two_servers());
  const OwnCheckpoints own{.iterations = {5, 6}, .error = {}};
  const auto first = agreement.notify("server0", own);
  const auto second = agreement.notify("server1", own);
  CHECK(first.get().iteration == 6);
  CHECK(second.get().error.empty());
}

TEST_CASE("All parameter servers hear why they cannot go on") {
  Agreement agreement(two_servers());
  OwnCheckpoints own;
  std::string why;
  SECTION("because one of them cannot") {
    own.error = why = "all checkpoints of server1 are damaged";
  }
  SECTION("because they have no iteration in common") {
    own.iterations = {1, 2};
    why = "no iteration in common";
  }
  const auto first = agreement.notify("server0", {.iterations = {5, 6}, .error = {}});
  const auto second = agreement.notify("server1", own);
  CHECK_THAT(first.get().error, Catch::Contains(why));
  CHECK_THAT(second.get().error, Catch::Contains(why));
}

}  // namespace parameter_server_agreement_test
}  // namespace batchrpc_examples
