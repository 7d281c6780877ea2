#include "rl_benchmark/policy.hpp"

#include <torch/torch.h>

#include <functional>
#include <limits>
#include <numeric>

namespace rl_benchmark {

Policy::Policy(const Setting& setting) : gradients_(!setting.inference) {
  const std::int64_t in = std::accumulate(setting.state_size.begin(), setting.state_size.end(),
                                          std::int64_t{1}, std::multiplies<>());
  model_->push_back(torch::nn::Flatten(torch::nn::FlattenOptions().start_dim(1)));
  model_->push_back(torch::nn::Linear(in, setting.out_features));
  for (int layer = 0; layer < setting.nlayers; ++layer)
    model_->push_back(torch::nn::Linear(setting.out_features, setting.out_features));
}

Choice Policy::choose(const at::Tensor& states) {
  const at::AutoGradMode mode(gradients_);
  const at::Tensor scores = torch::softmax(model_->forward(states), 0);
  const at::Tensor probabilities = scores / scores.sum(-1, true);
  const at::Tensor actions = probabilities.multinomial(1, true);
  constexpr float kEpsilon = std::numeric_limits<float>::epsilon();
  const at::Tensor logits = probabilities.clamp(kEpsilon, 1 - kEpsilon).log();
  return {.actions = actions.squeeze(-1), .log_probs = logits.gather(-1, actions).squeeze(-1)};
}

}  // namespace rl_benchmark
