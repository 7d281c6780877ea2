#pragma once

#include <batchrpc/env/env.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ppo/actor.hpp"
#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// The Sampler that steps environments in this process, on the calling thread. They form one group,
/// and the policy is asked once per step for all of them. Remote samplers are compared with it.
///
/// The seed of each episode comes from the sampler's seed, the environment's index and the
/// episode's number. So state() can bring a sampler with the same seed to the same point: it
/// repeats the actions of the current episodes. That needs environments that behave the same after
/// the same seed.
class LocalSampler final : public Sampler {
 public:
  /// Throws batchrpc::InvalidArgument unless there is an environment, and all share one usable
  /// spec.
  LocalSampler(const batchrpc::EnvFactory& make, std::int64_t envs, std::uint64_t seed,
               Decide decide);

  std::vector<Sample> sample(std::int64_t steps) override;

  [[nodiscard]] const batchrpc::EnvSpec& spec() const { return envs_.front().env->spec(); }
  /// The state of the environments, as bytes.
  [[nodiscard]] std::string state() const override;
  /// Takes the state of a sampler with the same number of environments and the same seed. An empty
  /// state is that of workers.
  void restore(const std::string& state, std::int64_t updates) override;

 private:
  struct Place {
    std::unique_ptr<batchrpc::Env> env;
    std::uint64_t episode = 0;
    std::string actions;  // of the current episode
  };

  [[nodiscard]] std::uint64_t seed_of(std::size_t index) const;
  [[nodiscard]] std::span<std::byte> next_observation(std::size_t index);

  std::vector<Place> envs_;
  std::uint64_t seed_;
  Decide decide_;
  at::Tensor next_;  // [N, d...]: the current observations
  bool begun_anew_ = true;
};

}  // namespace batchrpc_examples::ppo
