#include "ppo/remote_sampler.hpp"

#include <algorithm>
#include <batchrpc/torch/env.hpp>
#include <cstring>
#include <span>
#include <utility>

#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {

namespace rpc = batchrpc;

namespace {

// Copies `from` into row `row` of `to`. Both are dense and have the same type.
void copy_row(const at::Tensor& from, const at::Tensor& to, std::int64_t row) {
  std::memcpy(static_cast<char*>(to.data_ptr()) + static_cast<std::size_t>(row) * from.nbytes(),
              from.data_ptr(), from.nbytes());
}

}  // namespace

RemoteSampler::RemoteSampler(rpc::VectorEnv& envs, Decide decide, bool any_worker,
                             std::uint64_t seed)
    : envs_(envs),
      decide_(std::move(decide)),
      any_worker_(any_worker),
      seed_(seed),
      workers_(envs.workers().size()) {
  require_int64_action(envs.spec());
  reset(seed);
}

void RemoteSampler::restore(const std::string& /*state*/, std::int64_t updates) {
  reset(mix(seed_, static_cast<std::uint64_t>(updates)));
}

void RemoteSampler::reset(std::uint64_t seed) {
  envs_.reset_async(seed);
  do {
    const rpc::EnvBatch batch = receive();
    if (batch.groups == 0) continue;  // the steps in flight were lost
    group_envs_ = static_cast<std::int64_t>(batch.envs);
    groups_.resize(envs_.size() / batch.envs);
    const at::Tensor observations = observations_of(batch);
    for (std::size_t i = 0; i < batch.groups; ++i) {
      if (batch.valid[i * batch.envs] != 0) take(batch, i, observations).begun_anew = true;
    }
  } while (envs_.under_way() > 0 || groups_.empty());
}

// The group at that place of a batch; updates what the group sees.
RemoteSampler::Group& RemoteSampler::take(const rpc::EnvBatch& batch, std::size_t place,
                                          const at::Tensor& observations) {
  const rpc::EnvBatch::Group& source = batch.sources[place];
  Group& group = groups_[source.buffer * workers_ + source.worker];
  group.source = source;
  const std::int64_t first = static_cast<std::int64_t>(place) * group_envs_;
  group.now = observations.narrow(0, first, group_envs_);
  group.held = true;
  return group;
}

rpc::EnvBatch RemoteSampler::receive() { return any_worker_ ? envs_.recv() : envs_.step_wait(); }

std::vector<Sample> RemoteSampler::sample(std::int64_t steps) {
  begin_all(steps);
  do {  // also if nothing could be sent: recv() reports why, or returns a returned worker's
        // observations
    const rpc::EnvBatch batch = receive();
    if (batch.groups == 0) continue;  // the steps in flight were lost
    const at::Tensor observations = observations_of(batch);
    const std::vector<Group*> next = take_all(batch, observations, steps);
    if (!next.empty()) act(next, next.size() == batch.groups ? observations : seen_by(next));
  } while (envs_.under_way() > 0);
  std::vector<Sample> samples;
  for (Group& group : groups_) {
    group.finals.move_to(group.sample);
    samples.push_back(std::exchange(group.sample, {}));
  }
  return samples;
}

// Acts for one buffer after the other, so that one is stepped while actions are chosen for another.
void RemoteSampler::begin_all(std::int64_t steps) {
  std::vector<std::vector<Group*>> buffers(groups_.size() / workers_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    begin(groups_[g], steps);
    if (groups_[g].held) buffers[g / workers_].push_back(&groups_[g]);
  }
  for (const std::vector<Group*>& buffer : buffers)
    if (!buffer.empty()) act(buffer, seen_by(buffer));
}

// Takes the received groups, and returns those that have steps left.
std::vector<RemoteSampler::Group*> RemoteSampler::take_all(const rpc::EnvBatch& batch,
                                                           const at::Tensor& observations,
                                                           std::int64_t steps) {
  std::vector<Group*> next;
  for (std::size_t i = 0; i < batch.groups; ++i) {
    const std::size_t first = i * batch.envs;
    if (batch.valid[first] == 0) continue;
    Group& group = take(batch, i, observations);
    if (batch.started[first] != 0) {  // its worker is back, and waits for the next sample
      group.begun_anew = true;
      continue;
    }
    take_outcome(group, batch, i);
    if (group.step < steps) next.push_back(&group);
  }
  return next;
}

at::Tensor RemoteSampler::seen_by(const std::vector<Group*>& groups) {
  std::vector<at::Tensor> observations;
  for (const Group* group : groups)
    observations.push_back(group->now);
  return at::cat(observations);
}

void RemoteSampler::begin(Group& group, std::int64_t steps) const {
  if (!group.now.defined()) group.now = blank_observations(envs_.spec(), group_envs_);
  group.step = 0;
  group.finals = {};
  group.sample = blank_sample(steps, group.now);
  group.sample.begun_anew = std::exchange(group.begun_anew, false);
}

// Stores the outcome of the group's last actions.
void RemoteSampler::take_outcome(Group& group, const rpc::EnvBatch& batch, std::size_t place) {
  const std::size_t envs = batch.envs;
  const std::size_t first = place * envs;
  const auto row = group.step * group_envs_;
  Sample& sample = group.sample;
  std::memcpy(sample.rewards.data_ptr<float>() + row, &batch.rewards[first], envs * sizeof(float));
  std::memcpy(sample.terminated.data_ptr<bool>() + row, &batch.terminated[first], envs);
  std::memcpy(sample.truncated.data_ptr<bool>() + row, &batch.truncated[first], envs);
  std::fill_n(sample.valid.data_ptr<bool>() + row, envs, true);
  group.finals.add(batch, first, envs, row);
  ++group.step;
  sample.next_observations = group.now;
}

// Chooses actions for groups from their observations, which are consecutive, and sends them.
void RemoteSampler::act(const std::vector<Group*>& groups, const at::Tensor& observations) {
  const Decisions decisions = decide_(observations);
  const auto* actions = decisions.actions.data_ptr<std::int64_t>();
  const auto envs = static_cast<std::size_t>(group_envs_);
  std::vector<rpc::EnvBatch::Group> sources;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group& group = *groups[i];
    Sample& sample = group.sample;
    const auto row = static_cast<std::size_t>(group.step) * envs;
    copy_row(group.now, sample.observations, group.step);
    std::copy_n(actions + i * envs, envs, sample.actions.data_ptr<std::int64_t>() + row);
    std::copy_n(decisions.log_probs.data_ptr<float>() + i * envs, envs,
                sample.log_probs.data_ptr<float>() + row);
    std::copy_n(decisions.values.data_ptr<float>() + i * envs, envs,
                sample.values.data_ptr<float>() + row);
    sample.versions[group.step].fill_(decisions.version);
    group.held = false;
    sources.push_back(group.source);
  }
  envs_.step_async(sources, std::as_bytes(std::span(actions, groups.size() * envs)));
}

}  // namespace batchrpc_examples::ppo
