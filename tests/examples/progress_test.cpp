#include "cartpole/progress.hpp"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

namespace batchrpc_examples {
namespace progress_test {

Rollout rollout_of(std::vector<int> finished_lengths, int first_length) {
  Rollout rollout;
  rollout.finished_lengths = std::move(finished_lengths);
  rollout.first_length = first_length;
  return rollout;
}

TEST_CASE("the running reward is half the last reward and half of what it was") {
  TrainingProgress progress;
  progress.add_episode({rollout_of({20}, 20), rollout_of({26}, 26)});
  CHECK(progress.last_reward() == 23);
  CHECK(progress.running_reward() == 11.5);
  CHECK(progress.line() == "Episode 0  Last reward: 23.00  Average reward: 11.50");
  progress.add_episode({rollout_of({40}, 40)});
  CHECK(progress.running_reward() == 25.75);
  CHECK(progress.line() == "Episode 1  Last reward: 40.00  Average reward: 25.75");
}

TEST_CASE("CartPole is solved by a mean of 475 over 100 finished runs, not by fewer") {
  TrainingProgress progress;
  progress.add_episode({rollout_of(std::vector<int>(99, 500), 500)});
  CHECK_FALSE(progress.solved());
  progress.add_episode({rollout_of({500}, 500)});
  CHECK(progress.solved());
}

TEST_CASE("the mean that solves CartPole is exactly 475") {
  TrainingProgress exactly;
  exactly.add_episode({rollout_of(std::vector<int>(100, 475), 475)});
  CHECK(exactly.solved());
  TrainingProgress below;
  below.add_episode({rollout_of(std::vector<int>(99, 475), 475), rollout_of({474}, 474)});
  CHECK_FALSE(below.solved());
}

TEST_CASE("only the last 100 runs count") {
  TrainingProgress progress;
  progress.add_episode({rollout_of(std::vector<int>(1000, 10), 10)});
  progress.add_episode({rollout_of(std::vector<int>(99, 500), 500)});
  CHECK(progress.mean_length() == (99 * 500 + 10) / 100.0);
  CHECK(progress.solved());
  progress.add_episode({rollout_of(std::vector<int>(50, 400), 400)});
  CHECK(progress.mean_length() == 450);
  CHECK_FALSE(progress.solved());
}

TEST_CASE("an episode that no observer finished leaves the rewards as they are") {
  TrainingProgress progress;
  progress.add_episode({rollout_of({30}, 30)});
  progress.add_episode({});
  CHECK(progress.episodes() == 2);
  CHECK(progress.last_reward() == 30);
  CHECK(progress.running_reward() == 15);
}

}  // namespace progress_test
}  // namespace batchrpc_examples
