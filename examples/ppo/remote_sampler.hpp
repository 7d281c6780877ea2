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
/// environments take part from the next sample() on. Its environments have no state().
class RemoteSampler final : public Sampler {
 public:
  /// Resets the environments by that seed; they begin anew in the step in which they end
  /// (same_step). `any_worker`: goes on with whichever workers are ready; else, with all of a
  /// buffer, so that a run can be repeated. Throws as VectorEnv::reset_async().
  RemoteSampler(batchrpc::VectorEnv& envs, Decide decide, bool any_worker, std::uint64_t seed);

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
    std::int64_t step = 0;
    Sample sample{};
    Finals finals{};
  };

  [[nodiscard]] batchrpc::EnvBatch receive();
  void reset(std::uint64_t seed);
  Group& take(const batchrpc::EnvBatch& batch, std::size_t place, const at::Tensor& observations);
  void begin_all(std::int64_t steps);
  void begin(Group& group, std::int64_t steps) const;
  std::vector<Group*> take_all(const batchrpc::EnvBatch& batch, const at::Tensor& observations,
                               std::int64_t steps);
  void take_outcome(Group& group, const batchrpc::EnvBatch& batch, std::size_t place);
  void act(const std::vector<Group*>& groups, const at::Tensor& observations);
  [[nodiscard]] static at::Tensor seen_by(const std::vector<Group*>& groups);

  batchrpc::VectorEnv& envs_;
  Decide decide_;
  bool any_worker_;
  std::uint64_t seed_;
  std::int64_t group_envs_ = 0;
  std::vector<Group> groups_;  // by buffer and worker
  std::size_t workers_ = 0;
};

}  // namespace batchrpc_examples::ppo
