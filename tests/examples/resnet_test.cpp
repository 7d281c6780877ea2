#include "parameter_server/resnet.hpp"

#include <torch/nn/functional/loss.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace batchrpc_examples {
namespace resnet_test {

std::int64_t numbers(const ResNet50& model) {
  std::int64_t result = 0;
  for (const at::Tensor& parameter : model->parameters())
    result += parameter.numel();
  return result;
}

bool same_weights(const ResNet50& a, const ResNet50& b) {
  const std::vector<at::Tensor> other = b->parameters();
  std::size_t at = 0;
  for (const at::Tensor& parameter : a->parameters()) {
    if (!at::equal(parameter, other.at(at++))) return false;
  }
  return at == other.size();
}

std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// What scripts/check_resnet.sh compares with torchvision itself.
TEST_CASE("A ResNet-50 has as many parameters as torchvision's") {
  CHECK(numbers(ResNet50(30, 1)) == 23'569'502);
  CHECK(numbers(ResNet50(1000, 1)) == 25'557'032);
  CHECK_THROWS_AS(ResNet50(0, 1), std::invalid_argument);
}

TEST_CASE("A ResNet-50's layers are named and ordered as torchvision's") {
  const ResNet50 model(30, 1);
  const std::vector<std::string> names = model->named_parameters().keys();
  REQUIRE(names.size() == 161);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 15) ==
        std::vector<std::string>{
            "conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight",
            "layer1.0.bn1.weight", "layer1.0.bn1.bias", "layer1.0.conv2.weight",
            "layer1.0.bn2.weight", "layer1.0.bn2.bias", "layer1.0.conv3.weight",
            "layer1.0.bn3.weight", "layer1.0.bn3.bias", "layer1.0.downsample.0.weight",
            "layer1.0.downsample.1.weight", "layer1.0.downsample.1.bias"});
  CHECK(names[159] == "fc.weight");
  CHECK(names[160] == "fc.bias");
  CHECK(model->named_buffers().size() == 159);

  const auto modules = model->named_modules({}, /*include_self=*/false);
  const auto stride = [&](const std::string& name) {
    return modules[name]->as<torch::nn::Conv2d>()->options.stride()->at(0);
  };
  for (const std::string layer : {"layer2.0", "layer3.0", "layer4.0"}) {
    CHECK(stride(layer + ".conv1") == 1);
    CHECK(stride(layer + ".conv2") == 2);
    CHECK(stride(layer + ".downsample.0") == 2);
  }
  CHECK(stride("layer1.0.conv2") == 1);
  CHECK_FALSE(modules.contains("layer2.1.downsample"));
}

TEST_CASE("A ResNet-50's first weights are drawn as torchvision's") {
  const ResNet50 model(30, 1);
  for (const auto& item : model->named_parameters()) {
    const at::Tensor values = item.value().detach();
    INFO(item.key());
    if (layer_of(item.key()) == "fc") {
      const double bound = 1 / std::sqrt(2048.0);
      CHECK(values.abs().max().item<double>() <= bound);
      CHECK(values.abs().max().item<double>() > 0.8 * bound);
    } else if (values.dim() == 4) {
      const auto count = static_cast<double>(values.numel());
      const double deviation =
          std::sqrt(2.0 / static_cast<double>(values.size(0) * values.size(2) * values.size(3)));
      CHECK(values.std().item<double>() == Approx(deviation).epsilon(5 / std::sqrt(2 * count)));
      CHECK(std::abs(values.mean().item<double>()) < 5 * deviation / std::sqrt(count));
    } else {
      CHECK(at::equal(
          values, item.key().ends_with("weight") ? at::ones_like(values) : at::zeros_like(values)));
    }
  }
}

TEST_CASE("ResNet-50s of one seed are the same, also when several threads make them") {
  const ResNet50 model(30, 7);
  auto other_thread = std::async(std::launch::async, [] { return ResNet50(30, 7); });
  CHECK_FALSE(same_weights(model, ResNet50(30, 8)));
  CHECK(same_weights(model, other_thread.get()));
}

TEST_CASE("A ResNet-50 gives a row an image, and gradients to all parameters") {
  ResNet50 model(30, 1);
  const at::Tensor images = at::ones({2, 3, 64, 64}) * at::arange(2).view({2, 1, 1, 1});
  const at::Tensor outputs = model->forward(images);
  REQUIRE(outputs.sizes() == at::IntArrayRef{2, 30});
  torch::nn::functional::mse_loss(outputs, at::zeros({2, 30})).backward();
  for (const auto& item : model->named_parameters()) {
    INFO(item.key());
    CHECK(item.value().grad().defined());
  }

  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor alone = model->forward(images.narrow(0, 1, 1));
  CHECK(at::allclose(alone, model->forward(images).narrow(0, 1, 1), 1e-4, 1e-5));
}

}  // namespace resnet_test
}  // namespace batchrpc_examples
