#pragma once

#include <batchrpc/env.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// The Sampler whose environments are stepped by workers that choose the actions themselves. It
/// sends them weights before each sample (NetworkPolicy). There is one sample, and one message, for
/// each worker and buffer.
///
/// If a worker is lost, its part of the sample is invalid. When it is back, its environments take
/// part again from the next sample() on.
class RolloutSampler final : public Sampler {
 public:
  struct Weights {
    at::Tensor values;  // float32 [parameters]
    std::int64_t version = 0;
  };

  /// Resets the environments with that seed. Each sample uses the weights that `weights` returns
  /// then. Throws as VectorEnv::reset_async() does.
  RolloutSampler(batchrpc::VectorEnv& envs, std::function<Weights()> weights, std::uint64_t seed);

  /// Throws batchrpc::PeerLost if all workers are lost.
  std::vector<Sample> sample(std::int64_t steps) override;
  void restore(const std::string& state, std::int64_t updates) override;

 private:
  /// The environments of a worker and buffer.
  struct Group {
    batchrpc::EnvBatch::Group source{};
    at::Tensor now{};         // [k, d...]: the current observations
    bool held = false;        // nothing of it is in flight, so it can be stepped
    bool begun_anew = false;  // reset since its last sample
    Sample sample{};
  };

  void reset(std::uint64_t seed);
  void receive_all();
  void take_rollout(Group& group, const batchrpc::EnvBatch& batch, std::int64_t place) const;

  batchrpc::VectorEnv& envs_;
  std::function<Weights()> weights_;
  std::uint64_t seed_;
  std::vector<Group> groups_;  // by buffer and worker
  std::size_t workers_ = 0;
  std::int64_t group_envs_ = 0;
};

}  // namespace batchrpc_examples::ppo
