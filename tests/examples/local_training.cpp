#include "local_training.hpp"

#include <chrono>
#include <vector>

#include "cartpole/progress.hpp"
#include "cartpole_observer/cartpole_env.hpp"
#include "cartpole_observer/returns.hpp"

namespace batchrpc_examples {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

LocalTrainingResult train_locally(const LocalTraining& training) {
  const auto observers = static_cast<std::size_t>(training.agent.observers);
  ReinforceAgent agent(training.agent);
  TrainingProgress progress;
  std::vector<CartPoleEnv> environments;
  std::vector<RolloutRecorder> recorders;
  for (std::size_t i = 0; i < observers; ++i) {
    environments.emplace_back(training.agent.seed + i + 1);
    recorders.emplace_back(static_cast<int>(i), training.discount);
  }

  LocalTrainingResult result;
  std::vector<StateRow> rows(observers);
  while (!result.solved && result.episodes < training.most_episodes) {
    const auto start = std::chrono::steady_clock::now();
    agent.begin_episode();
    for (CartPoleEnv& environment : environments)
      environment.reset();
    for (int step = 0; step < training.agent.steps; ++step) {
      for (std::size_t i = 0; i < observers; ++i) {
        rows[i] = {static_cast<std::int32_t>(i), environments[i].observation()};
      }
      const std::vector<std::int32_t> actions = agent.select_actions(rows);
      for (std::size_t i = 0; i < observers; ++i) {
        const CartPoleEnv::Step made = environments[i].step(actions[i]);
        recorders[i].add(made.reward, made.ended());
        if (made.ended()) environments[i].reset();
      }
    }
    result.sampling_seconds += seconds_since(start);

    const auto update_start = std::chrono::steady_clock::now();
    std::vector<Rollout> rollouts;
    for (RolloutRecorder& recorder : recorders)
      rollouts.push_back(recorder.finish());
    agent.update(rollouts);
    progress.add_episode(rollouts);
    result.update_seconds += seconds_since(update_start);

    ++result.episodes;
    result.solved = progress.solved();
  }
  result.running_reward = progress.running_reward();
  return result;
}

}  // namespace batchrpc_examples
