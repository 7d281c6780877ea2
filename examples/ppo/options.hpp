#pragma once

#include <batchrpc/torch/policy.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "ppo/settings.hpp"

namespace batchrpc_examples::ppo {

/// Where the policy that chooses actions runs.
enum class InferencePlace : unsigned char {
  agent,  ///< in this process, for the environments of all workers
  worker  ///< in each worker for its own environments, with weights that it receives
};

using batchrpc::PolicyKind;

struct PpoOptions {
  std::string env = "cartpole";  ///< a name for make_env()
  int workers = 0;               ///< processes that step environments; 0: this process does
  int envs_per_worker = 0;       ///< without workers: of this process
  InferencePlace inference = InferencePlace::agent;
  PolicyKind policy = PolicyKind::eager;
  std::string policy_path{};  ///< a file or folder of batchrpc::load_policy(); empty: none
  int env_threads = 1;        ///< of each worker
  int torch_threads = 1;      ///< of LibTorch in this process, to learn and to choose actions
  double step_timeout =
      120;  ///< how long to wait for a worker's answer before it counts as lost, in s
  std::optional<int> rank{};      ///< this process's; 0: the agent; empty: starts the workers
  std::string join{};             ///< where agent and workers meet; empty: on this machine only
  int buffers = 1;                ///< groups of a worker's environments, which are stepped in turn
  std::int64_t total_steps = 0;   ///< of all environments together
  std::optional<double> until{};  ///< end early at this mean return of the last 100 episodes
  std::uint64_t seed = 1;
  PpoSettings settings{};

  std::string checkpoint{};   ///< a folder; empty: no checkpoints
  int checkpoint_every = 20;  ///< in updates
  std::string json{};         ///< writable path; empty: not wanted
  std::string figure{};       ///< ends in .svg
  std::string weights{};      ///< writable path; empty: not wanted

  [[nodiscard]] std::int64_t envs() const {
    return std::int64_t{envs_per_worker} * (workers > 0 ? workers : 1);
  }
  /// The environments that one message steps.
  [[nodiscard]] std::int64_t group_envs() const { return envs_per_worker / buffers; }
  [[nodiscard]] std::int64_t rows_per_update() const { return envs() * settings.steps; }
};

/// The identity of a training, in one line. A different line means a different training.
std::string training_settings(const PpoOptions& options);

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<PpoOptions> parse_options(int argc, const char* const* argv);

}  // namespace batchrpc_examples::ppo
