#pragma once

#include <batchrpc/env.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// The Sampler whose environments are stepped by workers that choose the actions themselves, by
/// weights that it sends them before each sample (NetworkPolicy). A sample a worker and buffer;
/// a message each.
///
/// What a worker that is lost would have sampled is not valid; when it is back, its environments
/// take part from the next sample() on.
class RolloutSampler final : public Sampler {
 public:
  struct Weights {
    at::Tensor values;  // float32 [parameters]
    std::int64_t version = 0;
  };

  /// Resets the environments by that seed; samples by what `weights` says then. Throws as
  /// VectorEnv::reset_async().
  RolloutSampler(batchrpc::VectorEnv& envs, std::function<Weights()> weights, std::uint64_t seed);

  /// Throws batchrpc::PeerLost when all workers are lost.
  std::vector<Sample> sample(std::int64_t steps) override;
  void restore(const std::string& state, std::int64_t updates) override;

 private:
  /// The environments of a worker and buffer.
  struct Group {
    batchrpc::EnvBatch::Group source{};
    at::Tensor now{};         // [k, d...]: what they see
    bool held = false;        // nothing of it is under way, and it can be stepped
    bool begun_anew = false;  // since the last sample that it was in
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
