#include "parameter_server/resnet.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

namespace {

torch::nn::Conv2d convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t size,
                              std::int64_t stride = 1) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(inputs, outputs, size).stride(stride).padding(size / 2).bias(false));
}

class BottleneckImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 4;

  BottleneckImpl(std::int64_t inputs, std::int64_t width, std::int64_t stride) {
    const std::int64_t outputs = width * kExpansion;
    conv1 = register_module("conv1", convolution(inputs, width, 1));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(width));
    conv2 = register_module("conv2", convolution(width, width, 3, stride));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(width));
    conv3 = register_module("conv3", convolution(width, outputs, 1));
    bn3 = register_module("bn3", torch::nn::BatchNorm2d(outputs));
    if (stride != 1 || inputs != outputs) {
      downsample = register_module("downsample",
                                   torch::nn::Sequential(convolution(inputs, outputs, 1, stride),
                                                         torch::nn::BatchNorm2d(outputs)));
    }
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = bn1->forward(conv1->forward(x)).relu_();
    y = bn2->forward(conv2->forward(y)).relu_();
    y = bn3->forward(conv3->forward(y));
    y += downsample.is_empty() ? x : downsample->forward(x);
    return y.relu_();
  }

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::BatchNorm2d bn2{nullptr};
  torch::nn::Conv2d conv3{nullptr};
  torch::nn::BatchNorm2d bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(Bottleneck);

torch::nn::Sequential stage(std::int64_t inputs, std::int64_t width, int blocks,
                            std::int64_t stride) {
  torch::nn::Sequential result;
  for (int block = 0; block < blocks; ++block) {
    result->push_back(block == 0 ? Bottleneck(inputs, width, stride)
                                 : Bottleneck(width * BottleneckImpl::kExpansion, width, 1));
  }
  return result;
}

// Like torch.nn.init.kaiming_normal_(mode="fan_out", nonlinearity="relu").
void draw_normal(const at::Tensor& weight, const at::Generator& generator) {
  const std::int64_t fan_out = weight.size(0) * weight[0][0].numel();
  weight.normal_(0, std::sqrt(2 / static_cast<double>(fan_out)), generator);
}

// Like the initialisation of torch.nn.Linear.
void draw_uniform(const torch::nn::Linear& layer, const at::Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(layer->weight.size(1)));
  layer->weight.uniform_(-bound, bound, generator);
  layer->bias.uniform_(-bound, bound, generator);
}

}  // namespace

ResNet50Impl::ResNet50Impl(std::int64_t classes, std::uint64_t seed) {
  if (classes < 1) {
    throw std::invalid_argument("a ResNet needs at least one class, not " +
                                std::to_string(classes));
  }
  conv1 = register_module("conv1", convolution(3, 64, 7, 2));
  bn1 = register_module("bn1", torch::nn::BatchNorm2d(64));
  layer1 = register_module("layer1", stage(64, 64, 3, 1));
  layer2 = register_module("layer2", stage(256, 128, 4, 2));
  layer3 = register_module("layer3", stage(512, 256, 6, 2));
  layer4 = register_module("layer4", stage(1024, 512, 3, 2));
  fc = register_module("fc", torch::nn::Linear(2048, classes));

  // Batch norm's weights are already ones and its biases zeros.
  const at::NoGradGuard no_grad;
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& module : modules(/*include_self=*/false)) {
    if (const auto* layer = module->as<torch::nn::Conv2d>()) draw_normal(layer->weight, generator);
  }
  draw_uniform(fc, generator);
}

at::Tensor ResNet50Impl::forward(const at::Tensor& images) {
  at::Tensor x = bn1->forward(conv1->forward(images)).relu_();
  x = at::max_pool2d(x, 3, 2, 1);
  for (torch::nn::Sequential* layer : {&layer1, &layer2, &layer3, &layer4})
    x = (*layer)->forward(x);
  return fc->forward(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

}  // namespace batchrpc_examples
