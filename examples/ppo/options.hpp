#pragma once

#include <batchrpc/torch/policy.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "ppo/settings.hpp"

namespace batchrpc_examples::ppo {

/// Where the policy runs that chooses actions.
enum class InferencePlace : unsigned char {
  agent,  ///< in this process, for the environments of all workers together
  worker  ///< in each worker, for its own, by weights that it is sent
};

using batchrpc::PolicyKind;

struct PpoOptions {
  std::string env = "cartpole";  ///< of make_env()
  int workers = 0;               ///< processes that step environments; 0: this one does
  int envs_per_worker = 0;       ///< of this process when there are no workers
  InferencePlace inference = InferencePlace::agent;
  PolicyKind policy = PolicyKind::eager;
  std::string policy_path{};  ///< a file or folder of batchrpc::load_policy(); empty: none
  int env_threads = 1;        ///< of a worker
  int torch_threads = 1;      ///< of LibTorch in this process: to learn, and to choose actions
  double step_timeout = 120;  ///< seconds for a worker's answer, after which it is lost
  std::optional<int> rank{};  ///< of this process, 0 the agent; nothing: it starts the workers
  std::string join{};         ///< where agent and workers meet; empty: this machine only
  int buffers = 1;  ///< groups into which a worker's environments are cut, stepped in turn
  std::int64_t total_steps = 0;   ///< of all environments together
  std::optional<double> until{};  ///< end early at this mean return of the last 100 episodes
  std::uint64_t seed = 1;
  PpoSettings settings{};

  std::string checkpoint{};   ///< a folder; empty: none are written
  int checkpoint_every = 20;  ///< updates
  std::string json{};         ///< paths that can be written; empty: not wanted
  std::string figure{};       ///< ends in .svg
  std::string weights{};      ///< as json

  [[nodiscard]] std::int64_t envs() const {
    return std::int64_t{envs_per_worker} * (workers > 0 ? workers : 1);
  }
  /// That one message steps.
  [[nodiscard]] std::int64_t group_envs() const { return envs_per_worker / buffers; }
  [[nodiscard]] std::int64_t rows_per_update() const { return envs() * settings.steps; }
};

/// What a training consists of, in one line: one with another line is another training.
std::string training_settings(const PpoOptions& options);

/// Nothing when help was asked for, which it prints. Throws UsageError.
std::optional<PpoOptions> parse_options(int argc, const char* const* argv);

}  // namespace batchrpc_examples::ppo
