#include "env/env_description.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/error.hpp"

namespace batchrpc::env {
namespace env_description_test {

constexpr MessageLimits kLimits{.frame_bytes = 1 << 20, .payload_bytes = 1 << 20};

OpenReply reply_of(std::int64_t numbers) {
  return {.spec = {.observation = {ElementType::float32, {numbers}}, .actions = 2}};
}

TEST_CASE("what the first worker says holds for all, and names who said it") {
  EnvDescription description(8);
  CHECK(description.spec() == nullptr);
  CHECK_THROWS_AS(description.require_steps(1), InvalidArgument);
  description.accept("first", reply_of(4), kLimits);
  CHECK(description.observation_bytes(2) == 2 * 8 * 4 * 4);
  CHECK(description.action_bytes(2) == 2 * 8 * 8);
  const auto spec = description.spec();
  description.accept("second", reply_of(4), kLimits);
  CHECK(description.spec() == spec);
  CHECK_THROWS_WITH(description.accept("second", reply_of(5), kLimits),
                    Catch::Contains("worker second") && Catch::Contains("those of first"));
  CHECK_THROWS_WITH(description.accept("first", reply_of(5), kLimits),
                    Catch::Contains("the previous process"));
  auto with_policy = reply_of(4);
  with_policy.extras = 2;
  CHECK_THROWS_WITH(description.accept("second", with_policy, kLimits),
                    Catch::Contains("2 numbers of its policy") && Catch::Contains("no policy"));
  CHECK(description.spec() == spec);
  CHECK_THROWS_WITH(description.require_policy("push_policy"), Catch::Contains("push_policy"));
}

TEST_CASE("environments that no message takes are refused, and describe nothing") {
  EnvDescription description(8);
  CHECK_THROWS_WITH(description.accept("first", reply_of(1 << 20), kLimits),
                    Catch::Contains("more than one message can carry"));
  CHECK(description.spec() == nullptr);
  description.accept("second", reply_of(4), kLimits);
  CHECK_NOTHROW(description.require_steps(description.most_steps()));
  CHECK_THROWS_AS(description.require_steps(description.most_steps() + 1), InvalidArgument);
}

}  // namespace env_description_test
}  // namespace batchrpc::env
