#include "ppo/loss.hpp"

#include <torch/types.h>

namespace batchrpc_examples::ppo {

Rows Rows::select(const at::Tensor& numbers) const {
  return {observations.index_select(0, numbers), actions.index_select(0, numbers),
          log_probs.index_select(0, numbers),    values.index_select(0, numbers),
          advantages.index_select(0, numbers),   returns.index_select(0, numbers)};
}

Loss ppo_loss(const ActorCriticOutput& output, const Rows& rows, const PpoSettings& settings) {
  const at::Tensor all_log_probs = at::log_softmax(output.logits, 1);
  const at::Tensor log_probs = all_log_probs.gather(1, rows.actions.unsqueeze(1)).squeeze(1);
  const at::Tensor log_ratio = log_probs - rows.log_probs;
  const at::Tensor ratio = log_ratio.exp();
  const at::Tensor clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip);

  at::Tensor advantages = rows.advantages;
  if (settings.normalize_advantages && rows.size() > 1) {
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8);
  }
  const at::Tensor policy = -at::min(advantages * ratio, advantages * clipped).mean();

  at::Tensor error = (output.values - rows.returns).square();
  if (settings.clip_values) {
    const at::Tensor near =
        rows.values + (output.values - rows.values).clamp(-settings.clip, settings.clip);
    error = at::max(error, (near - rows.returns).square());
  }
  const at::Tensor value = 0.5 * error.mean();
  const at::Tensor entropy = -(all_log_probs.exp() * all_log_probs).sum(1).mean();

  Loss loss;
  loss.total = policy + settings.value_coefficient * value - settings.entropy * entropy;
  loss.policy = policy.detach();
  loss.value = value.detach();
  loss.entropy = entropy.detach();
  loss.approx_kl = (ratio - 1 - log_ratio).mean().detach();
  loss.clip_fraction = ((ratio - 1).abs() > settings.clip).to(at::kFloat).mean().detach();
  return loss;
}

}  // namespace batchrpc_examples::ppo
