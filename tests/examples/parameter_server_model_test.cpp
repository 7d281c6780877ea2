#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "flat_parameters/flat_parameters.hpp"
#include "parameter_server/flat_sgd.hpp"
#include "parameter_server/reference.hpp"
#include "parameter_server/shared_model.hpp"
#include "parameter_server/trainer_model.hpp"

namespace batchrpc_examples {
namespace parameter_server_model_test {

torch::nn::Sequential small_model() {
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Linear(4, 2));
}

TEST_CASE("A module's parameters lie in one tensor, and so do their gradients") {
  torch::nn::Sequential model = small_model();
  const at::Tensor images = at::rand({5, 3});
  const at::Tensor before = model->forward(images).detach();
  const at::Tensor copy = flat_values(*model);
  const FlatParameters flat(*model);
  CHECK(flat.values().numel() == 3 * 4 + 4 + 4 * 2 + 2);
  CHECK(at::equal(flat.values(), copy));
  CHECK(at::equal(model->forward(images).detach(), before));

  flat.gradients().zero_();
  model->forward(images).sum().backward();
  CHECK(flat.gradients().slice(0, -2).eq(5).all().item<bool>());  // of the last bias
  std::int64_t begin = 0;
  for (const at::Tensor& parameter : model->parameters()) {
    const Shard place{begin, begin + parameter.numel()};
    CHECK(at::equal(place.of(flat.gradients()).view(parameter.sizes()), parameter.grad()));
    begin = place.end;
  }
  flat.values().zero_();
  CHECK(model->forward(images).eq(0).all().item<bool>());
}

TEST_CASE("Backward adds to the gradients where they lie") {
  torch::nn::Sequential model = small_model();
  const FlatParameters flat(*model);
  const void* const place = flat.gradients().data_ptr();
  for (int i = 0; i < 2; ++i)
    model->forward(at::ones({1, 3})).sum().backward();
  CHECK(flat.gradients().slice(0, -2).eq(2).all().item<bool>());
  CHECK(model->parameters()[0].grad().data_ptr() == place);
}

TEST_CASE("A module's float buffers may lie behind its parameters, and steps leave them") {
  torch::nn::BatchNorm1d model(3);  // 2 × 3 parameters, 2 × 3 float buffers, and a counter
  const FlatParameters flat(*model, true);
  CHECK(flat.gradients().numel() == 6);
  REQUIRE(flat.values().numel() == 12);
  CHECK(at::equal(flat.values(), flat_values(*model, true)));
  model->forward(at::randn({8, 3}) + 5);
  CHECK(at::equal(flat.values().slice(0, 6, 9), model->running_mean));
  CHECK(at::equal(flat.values().slice(0, 9), model->running_var));
  CHECK(flat.values().slice(0, 6, 9).gt(0.1).all().item<bool>());

  SharedModel shared(flat.values().clone(), 6, {.learning_rate = 1, .momentum = 0.9});
  const at::Tensor given_out = shared.values();
  for (int step = 0; step < 2; ++step)
    shared.step(at::ones({6}));
  CHECK(at::equal(shared.values().slice(0, 6), flat.values().slice(0, 6)));
  CHECK_FALSE(at::equal(shared.values(), flat.values()));
}

TEST_CASE("Parameters of another type are not flattened") {
  torch::nn::Sequential model = small_model();
  model->to(at::kDouble);
  CHECK_THROWS_AS(FlatParameters(*model), std::invalid_argument);
}

TEST_CASE("A model is cut into parts whose sizes differ by one at most") {
  const std::vector<Shard> parts = shards(23'569'502, 4);
  REQUIRE(parts.size() == 4);
  CHECK(parts.front().begin == 0);
  CHECK(parts.back().end == 23'569'502);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    CHECK(parts[i].begin == parts[i - 1].end);
    CHECK(parts[i].size() <= parts[i - 1].size());
    CHECK(parts[i].size() >= parts[0].size() - 1);
  }
  CHECK(shards(3, 3).back().size() == 1);
  CHECK_THROWS_AS(shards(3, 4), std::invalid_argument);
  CHECK_THROWS_AS(shards(3, 0), std::invalid_argument);
  const at::Tensor flat = at::arange(10);
  CHECK(at::equal(shards(10, 3)[1].of(flat), at::arange(4, 7)));
}

TEST_CASE("A part of a model is cut out of the whole of it") {
  torch::nn::BatchNorm1d model(5);  // 2 × 5 parameters, 2 × 5 float buffers, and a counter
  const at::Tensor all = flat_values(*model, true);
  CHECK(flat_elements(*model, true) == 20);
  CHECK(flat_elements(*model) == 10);
  for (const Shard& part : shards(20, 3))
    CHECK(at::equal(flat_values(*model, true, part), part.of(all)));
}

TEST_CASE("SGD of a flat tensor steps as LibTorch's") {
  const double momentum = GENERATE(0.0, 0.9);
  at::manual_seed(1);
  at::Tensor theirs = at::rand({1000});
  at::Tensor ours = theirs.clone();
  theirs.set_requires_grad(true);
  torch::optim::SGD optimizer({theirs}, torch::optim::SGDOptions(0.1).momentum(momentum));
  FlatSgd sgd({.learning_rate = 0.1, .momentum = momentum}, 1000);
  for (int step = 0; step < 5; ++step) {
    const at::Tensor gradient = at::randn({1000});
    theirs.mutable_grad() = gradient.clone();
    optimizer.step();
    sgd.step(ours, gradient, ours);
    CHECK(at::equal(ours, theirs.detach()));
  }
  CHECK(sgd.velocity().defined() == (momentum > 0));
}

TEST_CASE("Parameters that were given out stay as they were, and others are changed in place") {
  SharedModel model(at::zeros({4}), 4, {.learning_rate = 1, .momentum = 0});
  const at::Tensor one = at::ones({4});
  const void* const place = model.values().data_ptr();
  CHECK(model.step(one).data_ptr() == place);

  const at::Tensor kept = model.values();
  CHECK(model.step(one).data_ptr() != place);
  CHECK(at::equal(kept, -one));
  CHECK(at::equal(model.values(), -2 * one));
  const at::Tensor view = model.values().slice(0, 1, 2);
  model.step(one);
  CHECK(at::equal(view, at::full({1}, -2.F)));
  CHECK(at::equal(model.values(), -3 * one));
}

TEST_CASE("A model that is restored goes on as if nothing had been") {
  const SgdOptions options{.learning_rate = 0.5, .momentum = 0.9};
  SharedModel model(at::zeros({4}), 4, options);
  model.step(at::ones({4}));
  SharedModel other(at::zeros({4}), 4, options);
  model.use([&](const at::Tensor& values, const at::Tensor& velocity) {
    other.restore(values, velocity);
  });
  CHECK(at::equal(other.step(at::ones({4})), model.step(at::ones({4}))));
}

ParameterServerOptions small_training() {
  ParameterServerOptions options;
  options.trainers = 2;
  options.iterations = 1;
  options.batch_size = 2;
  options.image = 32;
  options.classes = 3;
  options.learning_rate = 0.1;
  return options;
}

TEST_CASE(
    "A trainer's images differ from those of others and of other iterations, its labels do "
    "not change") {
  const ParameterServerOptions options = small_training();
  const TrainingData data = training_data(options, 0, 0);
  CHECK(data.images.sizes() == at::IntArrayRef({2, 3, 32, 32}));
  CHECK(data.labels.sum(1).eq(1).all().item<bool>());
  CHECK(at::equal(data.images, training_data(options, 0, 0).images));
  CHECK_FALSE(at::equal(data.images, training_data(options, 1, 0).images));
  CHECK_FALSE(at::equal(data.images, training_data(options, 0, 1).images));
  CHECK(at::equal(data.labels, training_data(options, 0, 1).labels));
}

TEST_CASE("One process that averages makes a step of all trainers' mean gradient") {
  const ParameterServerOptions options = small_training();
  TrainerModel model(options);
  const at::Tensor first = model.values().clone();
  CHECK(model.compute_gradients(0, 0) > 0);
  const at::Tensor gradient = model.gradients().clone();
  model.compute_gradients(1, 0);
  const at::Tensor mean = (gradient + model.gradients()) / 2;
  const at::Tensor expected = first - options.learning_rate * mean;
  CHECK(at::allclose(train_alone(options), expected, 1e-6, 1e-7));
  CHECK(relative_difference(expected, expected) == 0);
  CHECK(relative_difference(at::tensor({1.5F, 2.F}), at::tensor({1.F, 2.F})) == 0.5);
}

}  // namespace parameter_server_model_test
}  // namespace batchrpc_examples
