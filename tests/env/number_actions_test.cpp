// Environments whose actions are numbers.
#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <locale>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/action_check.hpp"

namespace batchrpc::test {
namespace number_actions_test {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Observes its last action, of two numbers; its reward is the first one.
template <class T>
class Echo final : public Env {
 public:
  Echo(ElementType type, double low, double high) {
    spec_.observation = {type, {2}};
    spec_.action = {type, {2}};
    spec_.action_low = low;
    spec_.action_high = high;
  }
  [[nodiscard]] const EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> /*seed*/, std::span<std::byte> observation) override {
    std::ranges::fill(observation, std::byte{0});
  }
  [[nodiscard]] EnvStep step(std::span<const std::byte> action,
                             std::span<std::byte> observation) override {
    std::ranges::copy(action, observation.begin());
    return {.reward = static_cast<float>(elements_of<T>(action)[0])};
  }

 private:
  EnvSpec spec_;
};

template <class T>
void step_and_refuse(ElementType type, double low, double high, const std::vector<T>& allowed,
                     const std::vector<T>& refused) {
  SimulatedWorld world;
  Node driver(world.options("driver"));
  Node node(world.options("w0"));
  const EnvWorker worker(node, group_of([&] { return std::make_unique<Echo<T>>(type, low, high); }),
                         {.lanes = timed_lanes(1, world.loop(), [](std::size_t /*lane*/) {
                            return Duration(std::chrono::milliseconds(1));
                          })});
  VectorEnv envs(driver, {.workers = {"w0"}});
  EnvBatch batch = envs.reset();
  for (const T number : allowed) {
    const std::vector<T> action{number, allowed.front()};
    envs.step_async(batch, std::as_bytes(std::span(action)));
    batch = envs.step_wait();
    CHECK(batch.rewards == std::vector<float>{static_cast<float>(number)});
    CHECK(elements_of<T>(batch.observations.span())[1] == allowed.front());
  }
  for (const T number : refused) {
    const std::vector<T> action{allowed.front(), number};
    CHECK_THROWS_WITH(envs.step_async(batch, std::as_bytes(std::span(action))),
                      Catch::Contains("action 0 of 1"));
    CHECK_THROWS_AS(env::require_allowed(envs.spec(), std::as_bytes(std::span(action))),
                    InvalidArgument);
  }
}

TEST_CASE("actions of float32 are stepped within their range, and NaN never is") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  step_and_refuse<float>(ElementType::float32, -1, 2, {-1, 0.5F, 2}, {-1.5F, 2.5F, kNan});
}

TEST_CASE("actions of float32 may be clamped to a range's ends, which no float32 has") {
  const float above = std::nextafter(0.4F, 1.F);
  step_and_refuse<float>(ElementType::float32, -0.4, 0.4, {0.4F, -0.4F}, {above, -above});
  EnvSpec spec;
  spec.action = {ElementType::float32, {1}};
  spec.action_low = -0.4;
  spec.action_high = 0.4;
  CHECK_THROWS_WITH(env::require_allowed(spec, std::as_bytes(std::span(&above, 1))),
                    "action 0 of 1 is 0.400000036, but must be from -0.4 to 0.4");
}

TEST_CASE("a number that is refused is written the same way in every locale") {
  struct Thousands : std::numpunct<char> {
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  EnvSpec spec;
  spec.action = {ElementType::int64, {}};
  spec.actions = 2000;
  const std::int64_t action = 50000;
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new Thousands));
  CHECK_THROWS_WITH(env::require_allowed(spec, std::as_bytes(std::span(&action, 1))),
                    "action 0 of 1 is 50000, but must be from 0 to 1999");
  std::locale::global(before);
}

TEST_CASE("actions of float32 may have any value in a range that is wider than theirs, but NaN") {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  step_and_refuse<float>(ElementType::float32, -1e300, 1e300, {kMost, -kMost}, {kNan});
}

TEST_CASE("actions of float64 may have any value in an infinite range, but NaN") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  step_and_refuse<double>(ElementType::float64, -kInfinite, kInfinite, {-1e30, 0, kInfinite},
                          {kNan});
}

}  // namespace number_actions_test
}  // namespace batchrpc::test
