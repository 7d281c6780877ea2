#include "ppo/actor.hpp"

#include <algorithm>
#include <batchrpc/torch/module.hpp>
#include <cmath>

#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {

Decisions draw_actions(const batchrpc::PolicyOutput& output, std::uint64_t seed,
                       std::uint64_t first) {
  const at::Tensor logits = output.tensors[0].contiguous();
  const std::int64_t rows = logits.size(0);
  const std::int64_t actions = logits.size(1);
  Decisions decisions{at::empty({rows}, at::kLong), at::empty({rows}),
                      output.tensors[1].contiguous(),
                      static_cast<std::int64_t>(output.version) - 1};
  const float* row = logits.data_ptr<float>();
  auto* action = decisions.actions.data_ptr<std::int64_t>();
  auto* log_prob = decisions.log_probs.data_ptr<float>();
  for (std::int64_t i = 0; i < rows; ++i, row += actions) {
    const double largest = *std::max_element(row, row + actions);
    double sum = 0;
    for (std::int64_t a = 0; a < actions; ++a)
      sum += std::exp(row[a] - largest);
    double left = unit(mix(seed, first + static_cast<std::uint64_t>(i))) * sum;
    std::int64_t chosen = 0;
    while (chosen + 1 < actions && left >= std::exp(row[chosen] - largest)) {
      left -= std::exp(row[chosen] - largest);
      ++chosen;
    }
    action[i] = chosen;
    log_prob[i] = static_cast<float>(row[chosen] - largest - std::log(sum));
  }
  return decisions;
}

Decisions Actor::decide(const at::Tensor& observations) {
  const batchrpc::PolicyOutput output = policy_->forward(observations);
  Decisions decisions = draw_actions(output, seed_, drawn_);
  drawn_ += static_cast<std::uint64_t>(observations.size(0));
  return decisions;
}

void Actor::use(const ActorCritic& network, std::int64_t version) {
  use_weights(*policy_, network, version);
}

void use_weights(batchrpc::Policy& policy, const ActorCritic& network, std::int64_t version) {
  const std::uint64_t policy_version = static_cast<std::uint64_t>(version) + 1;
  if (policy.version() == policy_version) return;
  policy.update(batchrpc::state_of(network), policy_version);
}

}  // namespace batchrpc_examples::ppo
