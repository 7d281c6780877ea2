#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace batchrpc_examples {

/// ResNet-50 (He et al. 2015) like torchvision's `resnet50(num_classes=classes)`. That is v1.5,
/// whose blocks have their stride in the 3×3 convolution. Layer names, the order of parameters and
/// buffers, and results are the same; scripts/check_resnet.sh compares them.
///
/// Made on the CPU, in training mode. Models may be made on several threads at once. With the same
/// seed they have the same weights, since each uses its own generator.
class ResNet50Impl : public torch::nn::Module {
 public:
  /// Throws `std::invalid_argument` for fewer than one class.
  ResNet50Impl(std::int64_t classes, std::uint64_t seed);

  /// Maps images [B, 3, H, W] to logits [B, classes]. In training mode batch norm needs more than
  /// one value per channel: B > 1 if H and W are at most 32.
  at::Tensor forward(const at::Tensor& images);

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Sequential layer1{nullptr};
  torch::nn::Sequential layer2{nullptr};
  torch::nn::Sequential layer3{nullptr};
  torch::nn::Sequential layer4{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ResNet50);

}  // namespace batchrpc_examples
