#pragma once

#include <batchrpc/env/env.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ppo/actor.hpp"
#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// The Sampler that steps environments in this process, on the calling thread: one group, the
/// policy asked once a step for all of them. What remote ones are compared with.
///
/// Each episode begins with a seed made of the sampler's, the environment's place and the episode's
/// number. So a sampler of the same seed can be brought to where this one is by state(), provided
/// that the environments do the same after the same seed: it repeats the actions of the episodes
/// that have begun.
class LocalSampler final : public Sampler {
 public:
  /// Throws batchrpc::InvalidArgument unless there is an environment, and all have one usable spec.
  LocalSampler(const batchrpc::EnvFactory& make, std::int64_t envs, std::uint64_t seed,
               Decide decide);

  std::vector<Sample> sample(std::int64_t steps) override;

  [[nodiscard]] const batchrpc::EnvSpec& spec() const { return envs_.front().env->spec(); }
  /// Where the environments are, as bytes.
  [[nodiscard]] std::string state() const override;
  /// Of one with as many environments and the same seed; an empty state is that of workers.
  void restore(const std::string& state, std::int64_t updates) override;

 private:
  struct Place {
    std::unique_ptr<batchrpc::Env> env;
    std::uint64_t episode = 0;
    std::string actions;  // of the episode so far
  };

  [[nodiscard]] std::uint64_t seed_of(std::size_t index) const;
  [[nodiscard]] std::span<std::byte> next_observation(std::size_t index);

  std::vector<Place> envs_;
  std::uint64_t seed_;
  Decide decide_;
  at::Tensor next_;  // [N, d...]: where the environments are
  bool begun_anew_ = true;
};

}  // namespace batchrpc_examples::ppo
