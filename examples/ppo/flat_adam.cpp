#include "ppo/flat_adam.hpp"

#include <ATen/core/grad_mode.h>

#include <cmath>

namespace batchrpc_examples::ppo {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-5;

}  // namespace

void FlatAdam::step(const at::Tensor& values, const at::Tensor& gradients, double learning_rate) {
  const at::NoGradGuard no_grad;
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, steps);
  const double correction2 = std::sqrt(1 - std::pow(kBeta2, steps));
  mean_.mul_(kBeta1).add_(gradients, 1 - kBeta1);
  square_.mul_(kBeta2).addcmul_(gradients, gradients, 1 - kBeta2);
  const at::Tensor root = square_.sqrt().div_(correction2).add_(kEpsilon);
  values.addcdiv_(mean_, root, -learning_rate / correction1);
}

void FlatAdam::set_state(const at::Tensor& mean, const at::Tensor& square, std::int64_t steps) {
  mean_.copy_(mean);
  square_.copy_(square);
  steps_ = steps;
}

}  // namespace batchrpc_examples::ppo
