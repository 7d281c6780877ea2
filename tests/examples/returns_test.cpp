#include "cartpole_observer/returns.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace batchrpc_examples {
namespace returns_test {

TEST_CASE("returns without a discount count the steps that are left") {
  RolloutRecorder recorder(0, 1);
  for (int i = 0; i < 4; ++i)
    recorder.add(1, i == 3);
  CHECK(recorder.finish().returns == std::vector<float>{4, 3, 2, 1});
}

TEST_CASE("returns are discounted, and do not reach beyond the end of a run") {
  RolloutRecorder recorder(0, 0.5);
  recorder.add(1, false);
  recorder.add(2, false);
  recorder.add(4, true);
  recorder.add(8, false);
  recorder.add(16, false);
  CHECK(recorder.finish().returns == std::vector<float>{3, 4, 4, 16, 16});
}

TEST_CASE("a run cut by the end of the agent's episode is not a finished one") {
  RolloutRecorder recorder(0, 1);
  for (int i = 1; i <= 10; ++i)
    recorder.add(1, i == 3 || i == 7);
  const Rollout rollout = recorder.finish();
  CHECK(rollout.finished_lengths == std::vector<int>{3, 4});
  CHECK(rollout.first_length == 3);
  CHECK(rollout.returns == std::vector<float>{3, 2, 1, 4, 3, 2, 1, 3, 2, 1});
}

TEST_CASE("a run that ends with the agent's episode is a finished one") {
  RolloutRecorder recorder(0, 1);
  for (int i = 1; i <= 4; ++i)
    recorder.add(1, i == 4);
  CHECK(recorder.finish().finished_lengths == std::vector<int>{4});
}

TEST_CASE("the first run's length is told even when it was cut") {
  RolloutRecorder recorder(0, 1);
  for (int i = 0; i < 5; ++i)
    recorder.add(1, false);
  const Rollout rollout = recorder.finish();
  CHECK(rollout.first_length == 5);
  CHECK(rollout.finished_lengths.empty());
}

TEST_CASE("a recorder begins anew after each episode") {
  RolloutRecorder recorder(0, 1);
  recorder.add(1, true);
  recorder.add(1, false);
  recorder.finish();
  CHECK(recorder.steps() == 0);
  recorder.add(3, false);
  const Rollout rollout = recorder.finish();
  CHECK(rollout.returns == std::vector<float>{3});
  CHECK(rollout.finished_lengths.empty());
}

TEST_CASE("an episode without a step is an empty rollout") {
  const Rollout rollout = RolloutRecorder(3, 0.9).finish();
  CHECK(rollout.observer == 3);
  CHECK(rollout.returns.empty());
  CHECK(rollout.first_length == 0);
}

TEST_CASE("a discount outside of 0 to 1 is refused") {
  CHECK_THROWS_AS(RolloutRecorder(0, 1.01), std::invalid_argument);
  CHECK_THROWS_AS(RolloutRecorder(0, -0.1), std::invalid_argument);
}

}  // namespace returns_test
}  // namespace batchrpc_examples
