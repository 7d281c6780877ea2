#include "ppo/learner.hpp"

#include <torch/torch.h>

#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "ppo/loss.hpp"
#include "ppo/network.hpp"

namespace batchrpc_examples::ppo {
namespace learner_test {

namespace rpc = batchrpc;

batchrpc::EnvSpec spec_of(rpc::ElementType type, std::vector<std::int64_t> shape) {
  return {.observation = {type, std::move(shape)}, .actions = 3};
}

Rows random_rows(std::int64_t rows) {
  return {at::randn({rows, 4}), at::randint(3, {rows}, at::kLong), at::randn({rows}) * 0.3 - 1.1,
          at::randn({rows}),    at::randn({rows}) * 3 + 1,         at::randn({rows})};
}

// The loss as its formula says, a row after the other.
double plain_loss(const at::Tensor& logits, const at::Tensor& values, const Rows& rows,
                  const PpoSettings& settings) {
  const auto count = static_cast<double>(rows.size());
  std::vector<double> advantages;
  double mean = 0;
  double square = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    advantages.push_back(rows.advantages[i].item<double>());
    mean += advantages.back() / count;
  }
  for (const double advantage : advantages)
    square += (advantage - mean) * (advantage - mean) / (count - 1);
  double policy = 0;
  double value = 0;
  double entropy = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    double sum = 0;
    for (std::int64_t a = 0; a < 3; ++a)
      sum += std::exp(logits[i][a].item<double>());
    for (std::int64_t a = 0; a < 3; ++a) {
      const double probability = std::exp(logits[i][a].item<double>()) / sum;
      entropy -= probability * std::log(probability) / count;
    }
    const double log_prob =
        logits[i][rows.actions[i].item<std::int64_t>()].item<double>() - std::log(sum);
    const double ratio = std::exp(log_prob - rows.log_probs[i].item<double>());
    const double advantage =
        settings.normalize_advantages
            ? (advantages[static_cast<std::size_t>(i)] - mean) / (std::sqrt(square) + 1e-8)
            : advantages[static_cast<std::size_t>(i)];
    const double within = std::min(std::max(ratio, 1 - settings.clip), 1 + settings.clip);
    policy -= std::min(ratio * advantage, within * advantage) / count;
    const double now = values[i].item<double>();
    const double before = rows.values[i].item<double>();
    const double aim = rows.returns[i].item<double>();
    double error = (now - aim) * (now - aim);
    if (settings.clip_values) {
      const double near = before + std::min(std::max(now - before, -settings.clip), settings.clip);
      error = std::max(error, (near - aim) * (near - aim));
    }
    value += error / 2 / count;
  }
  return policy + settings.value_coefficient * value - settings.entropy * entropy;
}

TEST_CASE("PPO's loss and its gradient are those of its formula") {
  torch::manual_seed(1);
  PpoSettings settings{.entropy = 0.1};
  settings.clip_values = GENERATE(false, true);
  settings.normalize_advantages = GENERATE(true, false);
  const Rows rows = random_rows(24);
  const at::Tensor logits = at::randn({24, 3}).requires_grad_();
  const at::Tensor values = at::randn({24}).requires_grad_();
  const Loss loss = ppo_loss({logits, values}, rows, settings);
  CHECK(loss.total.item<double>() ==
        Approx(plain_loss(logits, values, rows, settings)).epsilon(1e-5));
  CHECK(loss.clip_fraction.item<double>() > 0);
  CHECK(loss.clip_fraction.item<double>() < 1);
  CHECK(loss.approx_kl.item<double>() > 0);

  loss.total.backward();
  const at::NoGradGuard no_grad;
  const auto check_gradient = [&](const at::Tensor& tensor) {
    at::Tensor flat = tensor.view(-1);
    const at::Tensor gradient = tensor.grad().view(-1);
    for (std::int64_t i = 0; i < flat.numel(); i += 5) {
      constexpr double kStep = 1e-2;
      const double there = flat[i].item<double>();
      flat[i] = there + kStep;
      const double above = plain_loss(logits, values, rows, settings);
      flat[i] = there - kStep;
      const double below = plain_loss(logits, values, rows, settings);
      flat[i] = there;
      INFO("element " << i);
      CHECK(gradient[i].item<double>() == Approx((above - below) / (2 * kStep)).margin(1e-3));
    }
  };
  check_gradient(logits);
  check_gradient(values);
}

TEST_CASE("Adam on one flat tensor is LibTorch's") {
  torch::manual_seed(2);
  const at::Tensor ours = at::randn({50});
  const at::Tensor theirs = ours.clone().requires_grad_();
  FlatAdam adam(50);
  torch::optim::Adam reference({theirs}, torch::optim::AdamOptions(1e-2).eps(1e-5));
  for (int i = 0; i < 20; ++i) {
    const at::Tensor gradients = at::randn({50});
    adam.step(ours, gradients, 1e-2);
    theirs.mutable_grad() = gradients.clone();
    reference.step();
  }
  CHECK(at::allclose(ours, theirs.detach(), 1e-5, 1e-6));
  CHECK(adam.steps() == 20);
}

TEST_CASE("Networks take what the games show, as they show it") {
  torch::manual_seed(3);
  const auto shape_of = [](const rpc::EnvSpec& spec, const at::Tensor& observations) {
    const at::NoGradGuard no_grad;
    const auto network = make_network(spec);
    const ActorCriticOutput output = evaluate(*network, observations);
    CHECK(output.values.sizes() == at::IntArrayRef({observations.size(0)}));
    CHECK(output.logits.sizes() == at::IntArrayRef({observations.size(0), 3}));
    // By the small gain of its last layer a new policy is all but uniform.
    CHECK(output.logits.abs().max().item<double>() < 0.1);
    std::int64_t parameters = 0;
    for (const at::Tensor& each : network->parameters())
      parameters += each.numel();
    return parameters;
  };
  CHECK(shape_of(spec_of(rpc::ElementType::float32, {4}), at::randn({5, 4})) ==
        2 * (4 * 64 + 64 + 64 * 64 + 64) + 64 * 3 + 3 + 64 + 1);
  CHECK(shape_of(spec_of(rpc::ElementType::boolean, {4, 10, 10}),
                 at::randint(2, {5, 4, 10, 10}).to(at::kBool)) ==
        16 * 36 + 16 + 1024 * 128 + 128 + 128 * 4 + 4);
  CHECK(shape_of(spec_of(rpc::ElementType::uint8, {4, 84, 84}),
                 at::randint(256, {5, 4, 84, 84}).to(at::kByte)) ==
        16 * 4 * 64 + 16 + 32 * 16 * 16 + 32 + 256 * 32 * 121 + 256 + 256 * 4 + 4);
  CHECK_THROWS_WITH(make_network(spec_of(rpc::ElementType::float32, {3, 9, 9})),
                    Catch::Contains("[3, 9, 9]"));
  CHECK_THROWS_AS(make_network({.observation = {rpc::ElementType::float32, {4}},
                                .action = {rpc::ElementType::float32, {}}}),
                  rpc::InvalidArgument);
}

TEST_CASE("Bytes are pixels: a network divides them by 255") {
  torch::manual_seed(4);
  const at::NoGradGuard no_grad;
  const auto network = make_network(spec_of(rpc::ElementType::uint8, {4, 84, 84}));
  const at::Tensor bytes = at::randint(256, {2, 4, 84, 84}).to(at::kByte);
  const at::Tensor values = evaluate(*network, bytes).values;
  network->named_parameters()["conv1.weight"].mul_(255);  // its bias is 0
  CHECK(at::allclose(values, evaluate(*network, bytes.to(at::kFloat) / 255).values, 1e-3, 1e-4));
}

TEST_CASE("Hidden layers begin orthogonal, with a gain of the root of two") {
  torch::manual_seed(5);
  const auto network = make_network(spec_of(rpc::ElementType::float32, {4}));
  const at::Tensor weights = network->named_parameters()["policy_hidden2.weight"].detach();
  CHECK(at::allclose(weights.matmul(weights.t()), 2 * at::eye(64), 1e-4, 1e-4));
  CHECK(network->named_parameters()["policy_hidden2.bias"].detach().abs().max().item<double>() ==
        0);
}

// Of 8 steps of 4 environments with observations [4], and 3 actions.
Sample random_sample() {
  Sample sample;
  sample.observations = at::randn({8, 4, 4});
  sample.actions = at::randint(3, {8, 4}, at::kLong);
  sample.log_probs = at::full({8, 4}, std::log(1.0 / 3));
  sample.values = at::randn({8, 4}) * 0.1;
  sample.rewards = at::randn({8, 4});
  sample.terminated = at::rand({8, 4}) < 0.2;
  sample.truncated = at::zeros({8, 4}, at::kBool);
  sample.valid = at::ones({8, 4}, at::kBool);
  sample.versions = at::zeros({8, 4}, at::kLong);
  sample.next_observations = at::randn({4, 4});
  sample.final_observations = at::zeros({0, 4});
  sample.final_rows = at::zeros({0}, at::kLong);
  return sample;
}

constexpr PpoSettings kSettings{.epochs = 2, .minibatches = 4, .learning_rate = 1e-2};

struct World {
  World() {
    torch::manual_seed(6);
    learner.emplace(make_network(spec_of(rpc::ElementType::float32, {4})), kSettings, 64, 1);
    sample = random_sample();
  }
  std::optional<Learner> learner;
  Sample sample;
};

TEST_CASE("An update changes the weights, and its learning rate falls to zero") {
  World world;
  const at::Tensor before = world.learner->weights().clone();
  const UpdateReport report = world.learner->update({world.sample});
  CHECK(report.rows == 32);
  CHECK(report.learning_rate == 1e-2);
  CHECK(report.entropy == Approx(std::log(3.0)).epsilon(0.05));
  CHECK(report.version_lag == 0);
  CHECK_FALSE(at::equal(world.learner->weights(), before));
  CHECK(world.learner->version() == 1);
  CHECK(world.learner->env_steps() == 32);
  CHECK(world.learner->optimizer().steps() == 8);
  const UpdateReport second = world.learner->update({world.sample});
  CHECK(second.learning_rate == Approx(5e-3));
  CHECK(second.version_lag == 1);
  CHECK(world.learner->update({world.sample}).learning_rate == 0);
}

TEST_CASE("Learning raises the probability of what was better") {
  World world;
  world.sample.rewards = (world.sample.actions == 2).to(at::kFloat);
  world.sample.terminated.fill_(true);
  torch::manual_seed(6);
  const auto network = make_network(spec_of(rpc::ElementType::float32, {4}));
  PpoSettings settings = kSettings;
  settings.anneal = false;
  Learner learner(network, settings, 1, 1);
  const auto probability = [&] {
    const at::NoGradGuard no_grad;
    const at::Tensor logits = evaluate(*network, world.sample.observations.flatten(0, 1)).logits;
    return at::softmax(logits, 1).select(1, 2).mean().item<double>();
  };
  CHECK(probability() == Approx(1.0 / 3).margin(0.02));
  (void)learner.update({world.sample});
  CHECK(probability() > 0.38);
}

TEST_CASE("Rows that are not valid change nothing, whatever stands in them") {
  World with;
  World without;
  // The same as two groups of which the second one was lost from the beginning.
  Sample lost = random_sample();
  lost.valid.fill_(false);
  lost.observations.fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK(with.learner->update({with.sample, lost}).rows == 32);
  CHECK(without.learner->update({without.sample}).rows == 32);
  CHECK(at::equal(with.learner->weights(), without.learner->weights()));

  World part;
  part.sample.valid[3][1] = false;
  part.sample.rewards[3][1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(part.learner->update({part.sample}).rows == 31);
  CHECK(part.learner->env_steps() == 31);
}

TEST_CASE("Without a valid row there is nothing to learn") {
  World world;
  const at::Tensor before = world.learner->weights().clone();
  world.sample.valid.fill_(false);
  CHECK(world.learner->update({world.sample}).rows == 0);
  CHECK(at::equal(world.learner->weights(), before));
  CHECK(world.learner->version() == 1);
  CHECK(world.learner->env_steps() == 0);
}

TEST_CASE("What is not a number stops an update before the weights are touched") {
  World world;
  const at::Tensor before = world.learner->weights().clone();
  const auto [name, member] = GENERATE(table<std::string, at::Tensor Sample::*>({
      {"observations", &Sample::observations},
      {"observations", &Sample::next_observations},
      {"rewards", &Sample::rewards},
      {"values", &Sample::values},
      {"log-probabilities", &Sample::log_probs},
  }));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers{std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  const float number = numbers[GENERATE(0U, 1U, 2U)];
  INFO(name << " with " << number);
  (world.sample.*member).view(-1)[5] = number;
  CHECK_THROWS_AS(world.learner->update({world.sample}), NotFinite);
  CHECK_THROWS_WITH(world.learner->update({world.sample}), Catch::StartsWith(name + " are not"));
  CHECK(at::equal(world.learner->weights(), before));
  CHECK(world.learner->version() == 0);
  CHECK(world.learner->optimizer().steps() == 0);
}

TEST_CASE("A loss that is not finite stops before the step that it would have gone into") {
  World world;
  const at::Tensor before = world.learner->weights().clone();
  world.sample.log_probs.fill_(-1000);  // a ratio beyond what float32 holds
  world.sample.rewards.select(1, 0).fill_(-1000);
  CHECK_THROWS_WITH(world.learner->update({world.sample}), Catch::Contains("losses are not"));
  CHECK(at::equal(world.learner->weights(), before));
  CHECK(world.learner->optimizer().steps() == 0);
}

TEST_CASE("Gradients are cut to their longest") {
  World world;
  world.sample.rewards *= 1e4;
  const UpdateReport report = world.learner->update({world.sample});
  CHECK(report.gradient_norm > 100);
  // Adam's mean of gradients is below the largest of them.
  CHECK(world.learner->optimizer().mean().norm().item<double>() < 0.5001);
}

TEST_CASE("weights that were written are those that are read") {
  const rpc::EnvSpec spec = spec_of(rpc::ElementType::float32, {4});
  const auto trained = make_network(spec);
  std::istringstream file(Learner(trained, {}, 1000, 1).weights_file());
  const std::shared_ptr<torch::nn::Module> other = make_network(spec);
  torch::load(other, file);
  for (const auto& weight : trained->named_parameters())
    CHECK(at::equal(other->named_parameters()[weight.key()], weight.value()));
}

}  // namespace learner_test
}  // namespace batchrpc_examples::ppo
