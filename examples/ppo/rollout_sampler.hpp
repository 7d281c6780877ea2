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
  /// float32 [parameters]: the weights to sample by.
  using Weights = std::function<at::Tensor()>;

  /// Resets the environments. Throws as VectorEnv::reset_async().
  RolloutSampler(batchrpc::VectorEnv& envs, Weights weights);

  /// Throws batchrpc::PeerLost when all workers are lost.
  std::vector<Sample> sample(std::int64_t steps, std::int64_t version) override;

 private:
  /// The environments of a worker and buffer.
  struct Group {
    batchrpc::EnvBatch::Group source{};
    at::Tensor now{};   // [k, d...]: what they see
    bool held = false;  // nothing of it is under way, and it can be stepped
    Sample sample{};
  };

  void receive_all();
  [[nodiscard]] Sample sample_of(const Group& group, const batchrpc::EnvBatch& batch,
                                 std::int64_t place) const;

  batchrpc::VectorEnv& envs_;
  Weights weights_;
  std::vector<Group> groups_;  // by buffer and worker
  std::size_t workers_ = 0;
  std::int64_t group_envs_ = 0;
};

}  // namespace batchrpc_examples::ppo
