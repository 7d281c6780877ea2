#include "cartpole/reinforce.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "local_training.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples {
namespace reinforce_test {

// States such as CartPole's, that differ by observer and step.
StateRow row_of(int observer, int step) {
  std::mt19937 random(static_cast<unsigned>(1000 * observer + step));
  std::uniform_real_distribution<float> number(-0.5F, 0.5F);
  StateRow row;
  row.observer = observer;
  for (float& member : row.state)
    member = number(random);
  return row;
}

// An episode in which every batch holds all observers; gives the actions, step by step.
std::vector<std::vector<std::int32_t>> play(ReinforceAgent& agent, int steps,
                                            std::mt19937* shuffled = nullptr) {
  std::vector<std::vector<std::int32_t>> actions;
  for (int step = 0; step < steps; ++step) {
    std::vector<StateRow> rows;
    for (int i = 0; i < agent.options().observers; ++i)
      rows.push_back(row_of(i, step));
    if (shuffled != nullptr) std::shuffle(rows.begin(), rows.end(), *shuffled);
    actions.push_back(agent.select_actions(rows));
  }
  return actions;
}

std::vector<Rollout> rollouts_of(int observers, int steps) {
  std::vector<Rollout> rollouts;
  for (int i = 0; i < observers; ++i) {
    Rollout rollout;
    rollout.observer = i;
    for (int step = 0; step < steps; ++step) {
      rollout.returns.push_back(static_cast<float>((i + 1) * (steps - step)) / 3);
    }
    rollouts.push_back(rollout);
  }
  return rollouts;
}

std::vector<at::Tensor> gradients(ReinforceAgent& agent, const at::Tensor& loss) {
  agent.policy()->zero_grad();
  loss.backward();
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : agent.policy()->parameters()) {
    result.push_back(parameter.grad().clone());
  }
  return result;
}

// The tutorial's way: a softmax and a log-probability, with their graph, for each step by itself.
at::Tensor loss_step_by_step(ReinforceAgent& agent, const std::vector<Rollout>& rollouts) {
  const auto observers = static_cast<int>(rollouts.size());
  const auto steps = static_cast<int>(rollouts.front().returns.size());
  double sum = 0;
  double squares = 0;
  for (const Rollout& rollout : rollouts) {
    for (const float value : rollout.returns) {
      sum += double{value};
      squares += double{value} * double{value};
    }
  }
  const int count = observers * steps;
  const double mean = sum / count;
  const double deviation = std::sqrt((squares - count * mean * mean) / (count - 1));

  at::Tensor loss = at::zeros({});
  for (int step = 0; step < steps; ++step) {
    std::vector<at::Tensor> states;
    std::vector<at::Tensor> masks;
    for (int i = 0; i < observers; ++i) {
      const StoredRows rows = agent.rows_of(i);
      states.push_back(rows.states[step]);
      if (rows.dropout_masks.defined()) masks.push_back(rows.dropout_masks[step]);
    }
    const at::Tensor probabilities = at::softmax(
        agent.policy()->forward(at::stack(states), masks.empty() ? at::Tensor() : at::stack(masks)),
        1);
    for (int i = 0; i < observers; ++i) {
      const auto action = agent.rows_of(i).actions[step].item<std::int64_t>();
      double weight =
          double{rollouts[static_cast<std::size_t>(i)].returns[static_cast<std::size_t>(step)]};
      if (agent.options().normalize_returns) weight = (weight - mean) / deviation;
      loss = loss - probabilities[i][action].log() * weight;
    }
  }
  return loss / observers;
}

TEST_CASE("REINFORCE's loss and gradient are those of the tutorial's graph of every step") {
  use_one_torch_thread();
  const double dropout = GENERATE(0.0, 0.6);
  const bool normalize = GENERATE(true, false);
  CAPTURE(dropout, normalize);
  ReinforceAgent agent(
      {.observers = 3, .steps = 20, .dropout = dropout, .normalize_returns = normalize, .seed = 1});
  play(agent, 20);
  const std::vector<Rollout> rollouts = rollouts_of(3, 20);

  const at::Tensor loss = agent.loss(rollouts);
  const at::Tensor expected = loss_step_by_step(agent, rollouts);
  CHECK(loss.item<double>() == Approx(expected.item<double>()).epsilon(1e-4).margin(1e-4));
  const std::vector<at::Tensor> found_gradients = gradients(agent, loss);
  const std::vector<at::Tensor> expected_gradients = gradients(agent, expected);
  REQUIRE(found_gradients.size() == 4);
  for (std::size_t i = 0; i < found_gradients.size(); ++i) {
    CHECK(at::allclose(found_gradients[i], expected_gradients[i], 1e-3, 1e-4));
  }
}

TEST_CASE("actions are sampled with the probabilities of the policy's softmax") {
  constexpr int kSteps = 20000;
  ReinforceAgent agent({.observers = 1, .steps = kSteps, .seed = 3});
  const StateRow row{.observer = 0, .state = {1, -2, 0.5, 3}};
  int right = 0;
  for (int step = 0; step < kSteps; ++step) {
    right += agent.select_actions(std::vector{row}).front();
  }
  const at::Tensor state = at::tensor({1.0F, -2.0F, 0.5F, 3.0F}).unsqueeze(0);
  const double expected = at::softmax(agent.policy()->forward(state), 1)[0][1].item<double>();
  CHECK(std::abs(expected - 0.5) > 0.02);
  CHECK(std::abs(static_cast<double>(right) / kSteps - expected) < 0.015);
}

TEST_CASE("dropout drops its share of the hidden units and scales the others up") {
  ReinforceAgent agent({.observers = 2, .steps = 200, .dropout = 0.6, .seed = 1});
  play(agent, 200);
  const at::Tensor masks = agent.rows_of(1).dropout_masks;
  REQUIRE(masks.numel() == 200 * 128);
  const double dropped = masks.eq(0).to(at::kDouble).mean().item<double>();
  CHECK(std::abs(dropped - 0.6) < 0.02);
  CHECK(masks.max().item<double>() == Approx(2.5));
  CHECK_FALSE(at::equal(masks[0], masks[1]));
  CHECK_FALSE(at::equal(masks, agent.rows_of(0).dropout_masks));
}

TEST_CASE("normalized returns make the loss blind to their scale and offset") {
  ReinforceAgent agent({.observers = 2, .steps = 10, .seed = 1});
  play(agent, 10);
  const std::vector<Rollout> rollouts = rollouts_of(2, 10);
  std::vector<Rollout> others = rollouts;
  for (Rollout& rollout : others) {
    for (float& value : rollout.returns)
      value = 7 * value - 30;
  }
  CHECK(agent.loss(others).item<double>() ==
        Approx(agent.loss(rollouts).item<double>()).epsilon(1e-4));
}

TEST_CASE("equal returns, and a single step, normalize to finite numbers") {
  ReinforceAgent agent({.observers = 1, .steps = 2, .seed = 1});
  play(agent, 2);
  Rollout rollout;
  rollout.returns = {5, 5};
  CHECK(agent.loss({rollout}).item<double>() == 0);
  agent.begin_episode();
  play(agent, 1);
  rollout.returns = {5};
  CHECK(agent.loss({rollout}).item<double>() == 0);
}

TEST_CASE("an action depends neither on the batch that its row comes in nor on the order there") {
  use_one_torch_thread();
  const ReinforceOptions options{.observers = 4, .steps = 50, .dropout = 0.2, .seed = 5};
  ReinforceAgent together(options);
  const auto expected = play(together, 50);

  ReinforceAgent apart(options);
  for (int step = 0; step < 50; ++step) {
    const std::vector<StateRow> pair{row_of(3, step), row_of(1, step)};
    const std::vector<std::int32_t> two = apart.select_actions(pair);
    const std::vector<std::int32_t> zero = apart.select_actions(std::vector{row_of(0, step)});
    const std::vector<std::int32_t> last = apart.select_actions(std::vector{row_of(2, step)});
    CHECK(expected[static_cast<std::size_t>(step)] ==
          std::vector<std::int32_t>{zero[0], two[1], last[0], two[0]});
  }
  CHECK(at::equal(together.rows_of(3).states, apart.rows_of(3).states));
}

TEST_CASE("an observer may be several steps ahead, and be twice in a batch") {
  ReinforceAgent agent({.observers = 2, .steps = 3, .seed = 5});
  const std::vector<StateRow> rows{row_of(1, 0), row_of(1, 1), row_of(0, 0)};
  CHECK(agent.select_actions(rows).size() == 3);
  CHECK(agent.rows_of(0).actions.size(0) == 1);
  CHECK(agent.rows_of(1).actions.size(0) == 2);
  CHECK(agent.rows_of(1).states[1][2].item<float>() == row_of(1, 1).state[2]);
}

TEST_CASE("rows that come as a tensor get the actions that rows of floats get") {
  const ReinforceOptions options{.observers = 3, .steps = 5, .seed = 5};
  ReinforceAgent plain(options);
  ReinforceAgent tensors(options);
  const std::vector<StateRow> rows{row_of(2, 0), row_of(0, 0), row_of(1, 0)};
  at::Tensor states = at::empty({3, 4});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      states[i][j] = rows[static_cast<std::size_t>(i)].state[static_cast<std::size_t>(j)];
    }
  }
  const std::vector<std::int64_t> observers{2, 0, 1};
  const std::vector<std::int32_t> expected = plain.select_actions(rows);
  const at::Tensor actions = tensors.select_actions(states, observers);
  REQUIRE(actions.sizes() == at::IntArrayRef{3});
  for (int i = 0; i < 3; ++i) {
    CHECK(actions[i].item<std::int32_t>() == expected[static_cast<std::size_t>(i)]);
  }
  CHECK(at::equal(plain.rows_of(2).states, tensors.rows_of(2).states));
}

TEST_CASE(
    "the same seed gives the same weights, bit for bit, in whatever order the rows of a batch "
    "come") {
  use_one_torch_thread();
  const int observers = GENERATE(1, 4);
  std::mt19937 order(7);
  const ReinforceOptions options{.observers = observers, .steps = 30, .dropout = 0.6, .seed = 543};
  ReinforceAgent one(options);
  ReinforceAgent same(options);
  ReinforceOptions changed = options;
  changed.seed = 544;
  ReinforceAgent other(changed);
  for (int episode = 0; episode < 3; ++episode) {
    for (ReinforceAgent* agent : {&one, &same, &other}) {
      play(*agent, 30, agent == &same ? &order : nullptr);
      agent->update(rollouts_of(observers, 30));
    }
  }
  CHECK(at::equal(one.policy()->hidden->weight, same.policy()->hidden->weight));
  CHECK(at::equal(one.policy()->output->bias, same.policy()->output->bias));
  CHECK_FALSE(at::equal(one.policy()->hidden->weight, other.policy()->hidden->weight));
}

TEST_CASE("sampling follows the weights that an update changed") {
  ReinforceAgent agent({.observers = 1, .steps = 100, .learning_rate = 0.5, .seed = 1});
  play(agent, 100);
  const at::Tensor before = agent.policy()->hidden->weight.clone();
  agent.update(rollouts_of(1, 100));
  CHECK_FALSE(at::equal(before, agent.policy()->hidden->weight));
  CHECK(agent.rows_of(0).actions.size(0) == 0);

  {
    const at::NoGradGuard no_grad;
    agent.policy()->output->bias.copy_(at::tensor({-1000.0F, 1000.0F}));
  }
  for (const auto& actions : play(agent, 100))
    CHECK(actions == std::vector<std::int32_t>{1});
}

TEST_CASE("observers that did not report are left out of the loss") {
  ReinforceAgent agent({.observers = 2, .steps = 10, .normalize_returns = false, .seed = 1});
  play(agent, 10);
  std::vector<Rollout> rollouts = rollouts_of(2, 10);
  rollouts.erase(rollouts.begin());
  const at::Tensor states = agent.rows_of(1).states;
  const at::Tensor chosen = at::log_softmax(agent.policy()->forward(states), 1)
                                .gather(1, agent.rows_of(1).actions.unsqueeze(1))
                                .squeeze(1);
  const at::Tensor expected = -(chosen * at::tensor(rollouts.front().returns)).sum();
  CHECK(agent.loss(rollouts).item<double>() == Approx(expected.item<double>()));

  const at::Tensor before = agent.policy()->hidden->weight.clone();
  CHECK(agent.update({}) == 0);
  CHECK(at::equal(before, agent.policy()->hidden->weight));
  CHECK(agent.rows_of(1).actions.size(0) == 0);
}

TEST_CASE("REINFORCE refuses rows, rollouts and options that cannot be") {
  ReinforceAgent agent({.observers = 2, .steps = 2, .seed = 1});
  CHECK(agent.select_actions(std::vector<StateRow>{}).empty());
  CHECK_THROWS_AS(agent.select_actions(std::vector{row_of(0, 0), row_of(2, 0)}),
                  std::invalid_argument);
  CHECK_THROWS_AS(agent.select_actions(std::vector(3, row_of(1, 0))), std::length_error);
  CHECK(agent.rows_of(0).actions.size(0) == 0);
  CHECK(agent.rows_of(1).actions.size(0) == 0);
  const std::vector<std::int64_t> observers{0, 1};
  CHECK_THROWS_AS(agent.select_actions(at::zeros({2, 5}), observers), std::invalid_argument);
  CHECK_THROWS_AS(agent.select_actions(at::zeros({3, 4}), observers), std::invalid_argument);
  CHECK_THROWS_AS(agent.select_actions(at::zeros({2, 4}, at::kDouble), observers),
                  std::invalid_argument);

  play(agent, 2);
  CHECK_THROWS_AS(agent.update(rollouts_of(2, 1)), std::invalid_argument);
  CHECK_THROWS_AS(agent.update(rollouts_of(3, 2)), std::invalid_argument);
  CHECK_THROWS_AS(agent.loss({}), std::invalid_argument);

  CHECK_THROWS_AS(ReinforceAgent({.observers = 0}), std::invalid_argument);
  CHECK_THROWS_AS(ReinforceAgent({.steps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(ReinforceAgent({.dropout = 1}), std::invalid_argument);
  CHECK_THROWS_AS(ReinforceAgent({.learning_rate = 0}), std::invalid_argument);
}

// Seeds 1 to 40 took 20 to 49 updates, and less than a second.
TEST_CASE("REINFORCE solves CartPole", "[slow]") {
  use_one_torch_thread();
  LocalTraining training;
  training.agent.learning_rate = 2e-2;
  training.agent.seed = 1;
  training.most_episodes = 120;
  const LocalTrainingResult result = train_locally(training);
  CHECK(result.solved);
  CHECK(result.running_reward > 400);
}

}  // namespace reinforce_test
}  // namespace batchrpc_examples
