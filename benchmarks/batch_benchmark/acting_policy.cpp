#include "batch_benchmark/acting_policy.hpp"

#include <utility>

namespace batch_benchmark {

at::Tensor ActingPolicy::act(const at::Tensor& states) {
  const at::AutoGradMode mode(grad_);
  const at::Tensor log_probabilities = at::log_softmax(policy_->forward(states), 1);
  const at::Tensor actions = at::multinomial(log_probabilities.detach().exp(), 1);
  if (grad_) keep(log_probabilities.gather(1, actions));
  return actions.squeeze(1);
}

std::int64_t ActingPolicy::act_once(const at::Tensor& state) {
  return act(state.unsqueeze(0)).item<std::int64_t>();
}

void ActingPolicy::keep(at::Tensor log_probabilities) {
  std::vector<at::Tensor> over;
  const std::lock_guard lock(mutex_);
  rows_ += log_probabilities.size(0);
  kept_.push_back(std::move(log_probabilities));
  if (rows_ < episode_) return;
  rows_ = 0;
  over.swap(kept_);
}

}  // namespace batch_benchmark
