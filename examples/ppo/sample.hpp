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

/// What one group of N environments did in T steps, on the CPU. Row [t, n] is one step of one
/// environment: its observation, action and outcome.
///
/// Environments are reset in the step in which they end: the observation after an end is the first
/// one of the next episode. The last observation of an episode is among the final observations if
/// its value counts, that is, if the episode was truncated and not terminated.
///
/// An invalid row counts for nothing: the worker was lost before the step's outcome was known, or
/// has no environment there. But its observation and value still belong to the valid row before it,
/// if that did not end an episode.
struct Sample {
  at::Tensor observations;  ///< [T, N, d...] in the environment's type
  at::Tensor actions;       ///< int64 [T, N]
  at::Tensor log_probs;     ///< float32 [T, N], of the actions when they were chosen
  at::Tensor values;        ///< float32 [T, N], of the observations at that time
  at::Tensor rewards;       ///< float32 [T, N]
  at::Tensor terminated;    ///< boolean [T, N]
  at::Tensor truncated;     ///< boolean [T, N]
  at::Tensor valid;         ///< boolean [T, N]
  at::Tensor versions;      ///< int64 [T, N]: versions of the weights that chose the actions

  at::Tensor next_observations;   ///< [N, d...]: after the last row
  at::Tensor final_observations;  ///< [K, d...]
  at::Tensor final_rows;          ///< int64 [K]: t · N + n of the rows that they belong to

  /// Whether the first row begins new episodes. Those of the previous sample, if any, then have no
  /// end.
  bool begun_anew = false;

  [[nodiscard]] std::int64_t steps() const { return rewards.size(0); }
  [[nodiscard]] std::int64_t envs() const { return rewards.size(1); }
};

/// Zero observations of `envs` environments with that spec: [envs, d...].
at::Tensor blank_observations(const batchrpc::EnvSpec& spec, std::int64_t envs);

/// A sample of environments whose next observations are `next`, [N, d...]: all zeros, no row valid,
/// no final observation.
Sample blank_sample(std::int64_t steps, const at::Tensor& next);

/// Collects the final observations of a sample.
class Finals {
 public:
  void add(std::int64_t row, at::Tensor observation) {
    rows_.push_back(row);
    observations_.push_back(std::move(observation));
  }
  /// Adds `count` rows of a batch, starting with `first`; in the sample they start with `row`.
  void add(const batchrpc::EnvBatch& batch, std::size_t first, std::size_t count, std::int64_t row);
  /// Moves them into a blank sample, and is empty again.
  void move_to(Sample& sample);

 private:
  std::vector<std::int64_t> rows_;
  std::vector<at::Tensor> observations_;
};

/// Throws batchrpc::InvalidArgument unless an action is one int64 number.
void require_int64_action(const batchrpc::EnvSpec& spec);

/// Steps environments with a policy. The groups, their sizes and the order of their environments
/// are the same in every call, and each environment continues where it was.
class Sampler {
 public:
  virtual ~Sampler() = default;
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Makes `steps` steps with each environment, and returns a sample for each group.
  virtual std::vector<Sample> sample(std::int64_t steps) = 0;

  /// The state of its environments as bytes; empty if it cannot be restored.
  [[nodiscard]] virtual std::string state() const { return {}; }
  /// Continues from the state that a sampler had after that many updates of the training. If that
  /// is not possible, begins new episodes, different from those of these updates. Throws
  /// std::invalid_argument for a damaged state.
  virtual void restore(const std::string& state, std::int64_t updates) = 0;
};

}  // namespace batchrpc_examples::ppo
