#include "ppo/rollout_sampler.hpp"

#include <batchrpc/torch/env.hpp>
#include <span>
#include <string>
#include <utility>

#include "ppo/policies.hpp"
#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {

namespace rpc = batchrpc;

namespace {

// The observations as [G, n, k, d...], also for one step.
at::Tensor all_observations(const rpc::EnvBatch& batch) {
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(batch.groups),
                                  static_cast<std::int64_t>(batch.steps),
                                  static_cast<std::int64_t>(batch.envs)};
  const std::vector<std::int64_t>& shape = batch.spec->observation.shape;
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return observations_of(batch).view(sizes);
}

}  // namespace

RolloutSampler::RolloutSampler(rpc::VectorEnv& envs, std::function<Weights()> weights,
                               std::uint64_t seed)
    : envs_(envs), weights_(std::move(weights)), seed_(seed), workers_(envs.workers().size()) {
  require_int64_action(envs.spec());
  reset(seed);
}

void RolloutSampler::restore(const std::string& /*state*/, std::int64_t updates) {
  reset(mix(seed_, static_cast<std::uint64_t>(updates)));
}

void RolloutSampler::reset(std::uint64_t seed) {
  envs_.reset_async(seed);
  receive_all();
}

std::vector<Sample> RolloutSampler::sample(std::int64_t steps) {
  const Weights weights = weights_();
  const at::Tensor values = weights.values.contiguous();
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(values.data_ptr()),
                                         values.nbytes());
  envs_.push_policy(rpc::Bytes::copy(bytes), static_cast<std::uint64_t>(weights.version)).get();
  std::vector<rpc::EnvBatch::Group> sources;
  for (Group& group : groups_) {
    if (!group.now.defined()) group.now = blank_observations(envs_.spec(), group_envs_);
    group.sample = blank_sample(steps, group.now);
    group.sample.begun_anew = std::exchange(group.begun_anew, false);
    if (group.held) sources.push_back(group.source);
    group.held = false;
  }
  envs_.rollout_async(sources, static_cast<std::size_t>(steps));
  receive_all();
  std::vector<Sample> samples;
  for (Group& group : groups_)
    samples.push_back(std::exchange(group.sample, {}));
  return samples;
}

// Receives rollouts, and first observations of workers that have joined or are back. Also called if
// nothing could be sent: recv() reports why, if no worker is back.
void RolloutSampler::receive_all() {
  do {
    const rpc::EnvBatch batch = envs_.recv();
    if (batch.groups == 0) continue;  // the steps in flight were lost
    group_envs_ = static_cast<std::int64_t>(batch.envs);
    groups_.resize(envs_.size() / batch.envs);
    const at::Tensor observations = all_observations(batch);
    for (std::size_t i = 0; i < batch.groups; ++i) {
      Group& group = groups_[batch.sources[i].buffer * workers_ + batch.sources[i].worker];
      // Also right for a first observation that arrived with rollouts of more steps.
      const std::size_t last_row = ((i + 1) * batch.steps - 1) * batch.envs;
      if (batch.valid[last_row] == 0) continue;
      const auto place = static_cast<std::int64_t>(i);
      const at::Tensor last = observations[place][-1];
      if (batch.started[last_row] != 0) {
        group.begun_anew = true;
      } else {
        take_rollout(group, batch, place);
        group.sample.next_observations = last;
      }
      group.source = batch.sources[i];
      group.now = last;
      group.held = true;
    }
  } while (envs_.under_way() > 0 || groups_.empty());
}

// Stores what the group's policy did since the group's last observation.
void RolloutSampler::take_rollout(Group& group, const rpc::EnvBatch& batch,
                                  std::int64_t place) const {
  const auto steps = static_cast<std::int64_t>(batch.steps);
  const std::vector<std::int64_t> all{static_cast<std::int64_t>(batch.groups), steps, group_envs_};
  const at::Tensor seen = all_observations(batch)[place];
  Sample& sample = group.sample;
  sample.observations = at::cat({group.now.unsqueeze(0), seen.narrow(0, 0, steps - 1)});
  sample.actions = actions_of(batch).view(all)[place];
  const at::Tensor extras = extras_of(batch).view({all[0], all[1], all[2], kPolicyExtras})[place];
  sample.log_probs = extras.select(2, 0).contiguous();
  sample.values = extras.select(2, 1).contiguous();
  sample.rewards = rewards_of(batch).view(all)[place];
  sample.terminated = terminated_of(batch).view(all)[place];
  sample.truncated = truncated_of(batch).view(all)[place];
  sample.valid = valid_of(batch).view(all)[place];
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto version = batch.versions[static_cast<std::size_t>(place * steps + t)];
    sample.versions[t].fill_(static_cast<std::int64_t>(version));
  }
  const auto first = static_cast<std::size_t>(place * steps * group_envs_);
  Finals finals;
  finals.add(batch, first, static_cast<std::size_t>(steps * group_envs_), 0);
  finals.move_to(sample);
}

}  // namespace batchrpc_examples::ppo
