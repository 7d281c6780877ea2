#pragma once

#include <ATen/ATen.h>

#include <batchrpc/env/env.hpp>
#include <batchrpc/env/env_batch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace batchrpc_examples::ppo {

/// What one group of N environments went through in T steps, on the CPU. Row [t, n] is a step of
/// one environment: what it saw, what was done, and what came of it.
///
/// Environments begin anew in the step in which they end: the observation of the row after an end
/// is the first of the next episode. The one that the episode ended with stands among the final
/// observations if the value of what would have come after it counts, that is, if the episode was
/// truncated and not terminated.
///
/// A row that is not valid (the worker was lost before the step's outcome was known, or has no
/// environment there) counts for nothing; only that its observation and value are still those which
/// the valid row before it, if it did not end an episode, led to.
struct Sample {
  at::Tensor observations;  ///< [T, N, d...] in the environment's type
  at::Tensor actions;       ///< int64 [T, N]
  at::Tensor log_probs;     ///< float32 [T, N], of the actions when they were chosen
  at::Tensor values;        ///< float32 [T, N], of the observations then
  at::Tensor rewards;       ///< float32 [T, N]
  at::Tensor terminated;    ///< boolean [T, N]
  at::Tensor truncated;     ///< boolean [T, N]
  at::Tensor valid;         ///< boolean [T, N]
  at::Tensor versions;      ///< int64 [T, N]: of the weights that chose the actions

  at::Tensor next_observations;   ///< [N, d...]: what the last row led to
  at::Tensor final_observations;  ///< [K, d...]
  at::Tensor final_rows;          ///< int64 [K]: t · N + n of the rows that these belong to

  /// The first row begins new episodes, and those of the sample before, if any, have no end.
  bool begun_anew = false;

  [[nodiscard]] std::int64_t steps() const { return rewards.size(0); }
  [[nodiscard]] std::int64_t envs() const { return rewards.size(1); }
};

/// What `envs` environments of that spec see, all zeros: [envs, d...].
at::Tensor blank_observations(const batchrpc::EnvSpec& spec, std::int64_t envs);

/// A sample of environments that see `next`, [N, d...]: all zeros, no row valid, no final
/// observation.
Sample blank_sample(std::int64_t steps, const at::Tensor& next);

/// Gathers the final observations of a sample.
class Finals {
 public:
  void add(std::int64_t row, at::Tensor observation) {
    rows_.push_back(row);
    observations_.push_back(std::move(observation));
  }
  /// Of `count` rows of a batch, from row `first` on, which are those of the sample from `row` on.
  void add(const batchrpc::EnvBatch& batch, std::size_t first, std::size_t count, std::int64_t row);
  /// Gives them to a blank sample, and is empty again.
  void move_to(Sample& sample);

 private:
  std::vector<std::int64_t> rows_;
  std::vector<at::Tensor> observations_;
};

/// Throws batchrpc::InvalidArgument unless an action is one number of int64.
void require_int64_action(const batchrpc::EnvSpec& spec);

/// Steps environments by a policy. The groups, their sizes and the order of their environments stay
/// the same from call to call, and each goes on where it was.
class Sampler {
 public:
  virtual ~Sampler() = default;
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Makes `steps` steps with each environment: a sample of each group.
  virtual std::vector<Sample> sample(std::int64_t steps) = 0;

  /// Where its environments are, as bytes, if it can be brought there again; else empty.
  [[nodiscard]] virtual std::string state() const { return {}; }
  /// Goes on where a sampler was that had this state after so many updates of the training, or
  /// begins new episodes, other ones than these updates have seen, where that cannot be. Throws
  /// std::invalid_argument for a state that is damaged.
  virtual void restore(const std::string& state, std::int64_t updates) = 0;
};

}  // namespace batchrpc_examples::ppo
