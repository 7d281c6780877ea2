#include "ppo/sample.hpp"

#include <batchrpc/base/error.hpp>
#include <batchrpc/torch/env.hpp>

namespace batchrpc_examples::ppo {

namespace rpc = batchrpc;

at::Tensor blank_observations(const rpc::EnvSpec& spec, std::int64_t envs) {
  std::vector<std::int64_t> sizes{envs};
  const std::vector<std::int64_t>& shape = spec.observation.shape;
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return at::zeros(sizes, rpc::scalar_type_of(spec.observation.type));
}

Sample blank_sample(std::int64_t steps, const at::Tensor& next) {
  std::vector<std::int64_t> sizes{steps};
  sizes.insert(sizes.end(), next.sizes().begin(), next.sizes().end());
  const std::vector<std::int64_t> rows{steps, next.size(0)};
  return {.observations = at::zeros(sizes, next.options()),
          .actions = at::zeros(rows, at::kLong),
          .log_probs = at::zeros(rows),
          .values = at::zeros(rows),
          .rewards = at::zeros(rows),
          .terminated = at::zeros(rows, at::kBool),
          .truncated = at::zeros(rows, at::kBool),
          .valid = at::zeros(rows, at::kBool),
          .versions = at::zeros(rows, at::kLong),
          .next_observations = next,
          .final_observations = next.narrow(0, 0, 0),
          .final_rows = at::empty({0}, at::kLong)};
}

void Finals::add(const rpc::EnvBatch& batch, std::size_t first, std::size_t count,
                 std::int64_t row) {
  if (batch.final_rows.empty()) return;
  const at::Tensor observations = rpc::final_observations_of(batch);
  for (std::size_t f = 0; f < batch.final_rows.size(); ++f) {
    const std::size_t at = batch.final_rows[f];
    if (at < first || at >= first + count || batch.terminated[at] != 0) continue;
    add(row + static_cast<std::int64_t>(at - first), observations[static_cast<std::int64_t>(f)]);
  }
}

void Finals::move_to(Sample& sample) {
  if (rows_.empty()) return;
  sample.final_observations = at::stack(observations_);
  sample.final_rows = at::tensor(rows_, at::kLong);
  rows_.clear();
  observations_.clear();
}

void require_int64_action(const rpc::EnvSpec& spec) {
  if (spec.action == rpc::ArraySpec{rpc::ElementType::int64, {}}) return;
  throw rpc::InvalidArgument("a sampler needs environments with one int64 action, not " +
                             to_string(spec));
}

}  // namespace batchrpc_examples::ppo
