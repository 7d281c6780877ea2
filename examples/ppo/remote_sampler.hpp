#pragma once

#include <batchrpc/env.hpp>
#include <cstdint>
#include <vector>

#include "ppo/actor.hpp"
#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// The Sampler whose environments are stepped by workers, with the policy in this process. The
/// policy is asked once for all environments whose observations have arrived. There is one sample
/// for each worker and buffer.
///
/// If a worker is lost, its rows are invalid from its last step on. When it is back, its
/// environments take part again from the next sample() on. Its environments have no state().
class RemoteSampler final : public Sampler {
 public:
  /// Resets the environments with that seed; they are reset in the step in which they end
  /// (same_step). `any_worker`: continues with whichever workers are ready. Otherwise it waits for
  /// all of a buffer, so that a run can be repeated. Throws as VectorEnv::reset_async() does.
  RemoteSampler(batchrpc::VectorEnv& envs, Decide decide, bool any_worker, std::uint64_t seed);

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
