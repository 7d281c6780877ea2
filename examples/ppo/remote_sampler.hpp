#pragma once

#include <batchrpc/env.hpp>
#include <cstdint>
#include <vector>

#include "ppo/actor.hpp"
#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// The Sampler whose environments are stepped by workers, and whose policy is asked here, once for
/// all environments whose observations have come. A sample a worker and buffer.
///
/// Rows of a worker that is lost are not valid from its last step on; when it is back, its
/// environments take part from the next sample() on.
class RemoteSampler final : public Sampler {
 public:
  /// Resets the environments, which begin anew in the step in which they end (same_step).
  /// `any_worker`: goes on with whichever workers are ready; else, with all of a buffer, so that a
  /// run can be repeated. Throws as VectorEnv::reset_async().
  RemoteSampler(batchrpc::VectorEnv& envs, Decide decide, bool any_worker);

  /// Throws batchrpc::PeerLost when all workers are lost.
  std::vector<Sample> sample(std::int64_t steps, std::int64_t version) override;

 private:
  /// The environments of a worker and buffer.
  struct Group {
    batchrpc::EnvBatch::Group source{};
    at::Tensor now{};   // [k, d...]: what they see
    bool held = false;  // nothing of it is under way, and it can be stepped
    std::int64_t step = 0;
    Sample sample{};
    Finals finals{};
  };

  [[nodiscard]] Group& group_of(const batchrpc::EnvBatch::Group& source);
  [[nodiscard]] batchrpc::EnvBatch receive();
  void begin(Group& group, std::int64_t steps, std::int64_t version) const;
  void take_outcome(Group& group, const batchrpc::EnvBatch& batch, std::size_t place);
  void act(const std::vector<Group*>& groups, const at::Tensor& observations);
  static Sample finish(Group& group);

  batchrpc::VectorEnv& envs_;
  Decide decide_;
  bool any_worker_;
  std::int64_t group_envs_ = 0;
  std::vector<Group> groups_;  // by buffer and worker
  std::size_t workers_ = 0;
};

}  // namespace batchrpc_examples::ppo
