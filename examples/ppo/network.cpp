#include "ppo/network.hpp"

#include <torch/torch.h>

#include <batchrpc/base/error.hpp>
#include <cmath>

namespace batchrpc_examples::ppo {
namespace {

namespace nn = torch::nn;

template <class Layer>
Layer orthogonal(Layer layer, double gain) {
  nn::init::orthogonal_(layer->weight, gain);
  nn::init::zeros_(layer->bias);
  return layer;
}

const double kHiddenGain = std::sqrt(2.0);

nn::Linear linear(std::int64_t inputs, std::int64_t outputs, double gain = kHiddenGain) {
  return orthogonal(nn::Linear(inputs, outputs), gain);
}

nn::Conv2d convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t size,
                       std::int64_t stride = 1) {
  return orthogonal(nn::Conv2d(nn::Conv2dOptions(inputs, outputs, size).stride(stride)),
                    kHiddenGain);
}

at::Tensor as_floats(const at::Tensor& observations) {
  at::Tensor floats = observations.to(at::kFloat);
  return observations.scalar_type() == at::kByte ? floats.div_(255) : floats;
}

class Mlp final : public ActorCritic {
 public:
  Mlp(std::int64_t inputs, std::int64_t actions)
      : policy_(register_module("policy", branch(inputs, actions, 0.01))),
        value_(register_module("value", branch(inputs, 1, 1))) {}

  ActorCriticOutput forward(const at::Tensor& observations) override {
    const at::Tensor input = as_floats(observations);
    return {policy_->forward(input), value_->forward(input).squeeze(1)};
  }

 private:
  static nn::Sequential branch(std::int64_t inputs, std::int64_t outputs, double gain) {
    constexpr std::int64_t kUnits = 64;
    return nn::Sequential(linear(inputs, kUnits), nn::Tanh(), linear(kUnits, kUnits), nn::Tanh(),
                          linear(kUnits, outputs, gain));
  }

  nn::Sequential policy_;
  nn::Sequential value_;
};

class Convolutional final : public ActorCritic {
 public:
  Convolutional(nn::Sequential trunk, std::int64_t features, std::int64_t actions)
      : trunk_(register_module("trunk", std::move(trunk))),
        policy_(register_module("policy", linear(features, actions, 0.01))),
        value_(register_module("value", linear(features, 1, 1))) {}

  ActorCriticOutput forward(const at::Tensor& observations) override {
    const at::Tensor features = trunk_->forward(as_floats(observations));
    return {policy_->forward(features), value_->forward(features).squeeze(1)};
  }

 private:
  nn::Sequential trunk_;
  nn::Linear policy_;
  nn::Linear value_;
};

nn::Sequential minatar_trunk(std::int64_t channels) {
  return nn::Sequential(convolution(channels, 16, 3), nn::ReLU(), nn::Flatten(),
                        linear(16 * 8 * 8, 128), nn::ReLU());
}

// TensorFlow's "same" padding, which RLlib has: 84 → 21 → 11 → 1.
nn::Sequential atari_trunk(std::int64_t channels) {
  return nn::Sequential(
      nn::ConstantPad2d(nn::ConstantPad2dOptions({2, 2, 2, 2}, 0)), convolution(channels, 16, 8, 4),
      nn::ReLU(), nn::ConstantPad2d(nn::ConstantPad2dOptions({1, 2, 1, 2}, 0)),
      convolution(16, 32, 4, 2), nn::ReLU(), convolution(32, 256, 11), nn::ReLU(), nn::Flatten());
}

}  // namespace

std::shared_ptr<ActorCritic> make_network(const batchrpc::EnvSpec& spec) {
  const auto& shape = spec.observation.shape;
  if (spec.actions < 1 || spec.action.elements() != 1) {
    throw batchrpc::InvalidArgument(
        "PPO takes environments whose action is one number of several, not " + to_string(spec));
  }
  if (shape.size() == 1) return std::make_shared<Mlp>(shape[0], spec.actions);
  const auto is_square = [&](std::int64_t size) {
    return shape.size() == 3 && shape[1] == size && shape[2] == size;
  };
  if (is_square(10)) {
    return std::make_shared<Convolutional>(minatar_trunk(shape[0]), 128, spec.actions);
  }
  if (is_square(84)) {
    return std::make_shared<Convolutional>(atari_trunk(shape[0]), 256, spec.actions);
  }
  throw batchrpc::InvalidArgument("there is no network for observations of " +
                                  to_string(spec.observation) +
                                  ": only for [n], [channels, 10, 10] and [channels, 84, 84]");
}

}  // namespace batchrpc_examples::ppo
