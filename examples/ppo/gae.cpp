#include "ppo/gae.hpp"

#include <stdexcept>
#include <unordered_map>

namespace batchrpc_examples::ppo {
namespace {

std::unordered_map<std::int64_t, float> by_row(const at::Tensor& rows, const at::Tensor& values) {
  std::unordered_map<std::int64_t, float> result;
  const at::Tensor dense_rows = rows.contiguous();
  const at::Tensor dense_values = values.contiguous();
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    result[dense_rows.data_ptr<std::int64_t>()[i]] = dense_values.data_ptr<float>()[i];
  }
  return result;
}

}  // namespace

Advantages advantages_of(const Sample& sample, const at::Tensor& next_values,
                         const at::Tensor& final_values, double gamma, double lambda) {
  const std::int64_t steps = sample.steps();
  const std::int64_t envs = sample.envs();
  Advantages result{at::zeros({steps, envs}), at::zeros({steps, envs})};
  const auto rewards = sample.rewards.accessor<float, 2>();
  const auto values = sample.values.accessor<float, 2>();
  const auto terminated = sample.terminated.accessor<bool, 2>();
  const auto truncated = sample.truncated.accessor<bool, 2>();
  const auto valid = sample.valid.accessor<bool, 2>();
  const auto last_values = next_values.accessor<float, 1>();
  const auto finals = by_row(sample.final_rows, final_values);
  auto advantages = result.advantages.accessor<float, 2>();
  auto returns = result.returns.accessor<float, 2>();
  for (std::int64_t n = 0; n < envs; ++n) {
    double following = 0;  // the advantage of row t + 1, if that is valid
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      if (!valid[t][n]) {
        following = 0;
        continue;
      }
      double next_value = t + 1 < steps ? values[t + 1][n] : last_values[n];
      if (terminated[t][n]) {
        next_value = 0;
      } else if (truncated[t][n]) {
        const auto found = finals.find(t * envs + n);
        if (found == finals.end()) {
          throw std::invalid_argument("a truncated row of a sample has no final observation");
        }
        next_value = found->second;
      }
      if (terminated[t][n] || truncated[t][n]) following = 0;
      const double value = values[t][n];
      following = rewards[t][n] + gamma * next_value - value + gamma * lambda * following;
      advantages[t][n] = static_cast<float>(following);
      returns[t][n] = static_cast<float>(following + value);
    }
  }
  return result;
}

}  // namespace batchrpc_examples::ppo
