#include <batchrpc/base/error.hpp>
#include <batchrpc/env/array_spec.hpp>
#include <batchrpc/env/env.hpp>
#include <catch2/catch.hpp>
#include <limits>

namespace batchrpc {
namespace array_spec_test {

TEST_CASE("an array's elements and bytes are counted from its shape and type") {
  CHECK(ArraySpec{ElementType::float32, {4, 84, 84}}.elements() == 28224);
  CHECK(ArraySpec{ElementType::float32, {4, 84, 84}}.bytes() == 112896);
  CHECK(ArraySpec{ElementType::uint8, {4, 84, 84}}.bytes() == 28224);
  CHECK(ArraySpec{ElementType::int64, {}}.elements() == 1);
  CHECK(ArraySpec{ElementType::int64, {}}.bytes() == 8);
  CHECK(ArraySpec{ElementType::float64, {3, 0}}.elements() == 0);
}

TEST_CASE("an array's text names its type and shape") {
  CHECK(to_string(ArraySpec{ElementType::float32, {2, 3}}) == "float32 [2, 3]");
  CHECK(to_string(ArraySpec{ElementType::boolean, {}}) == "bool []");
}

TEST_CASE("shapes that no memory could hold are refused") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS((ArraySpec{ElementType::uint8, {-1}}.elements()), InvalidArgument);
  CHECK_THROWS_AS((ArraySpec{ElementType::uint8, {kMost, kMost}}.elements()), InvalidArgument);
  CHECK_THROWS_AS((ArraySpec{ElementType::uint8, {std::int64_t{1} << 41}}.bytes()),
                  InvalidArgument);
  CHECK(ArraySpec{ElementType::uint8, {kMost, 0}}.elements() == 0);
}

TEST_CASE("a spec that nobody can step is refused, in words that say why") {
  EnvSpec spec;
  spec.observation = {ElementType::float32, {4}};
  spec.actions = 2;
  CHECK_NOTHROW(require_usable(spec));

  EnvSpec no_observation = spec;
  no_observation.observation.shape = {0};
  CHECK_THROWS_WITH(require_usable(no_observation), Catch::Contains("without elements"));
  EnvSpec float_actions = spec;
  float_actions.action.type = ElementType::float32;
  CHECK_THROWS_WITH(require_usable(float_actions), Catch::Contains("neither int64 nor int32"));
  EnvSpec empty_range = spec;
  empty_range.actions = 0;
  empty_range.action = {ElementType::float32, {6}};
  empty_range.action_low = 1;
  CHECK_THROWS_WITH(require_usable(empty_range), Catch::Contains("empty range"));
  EnvSpec integers = spec;
  integers.actions = 0;
  CHECK_THROWS_WITH(require_usable(integers), Catch::Contains("neither float32 nor float64"));
}

}  // namespace array_spec_test
}  // namespace batchrpc
