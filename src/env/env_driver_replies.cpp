#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "env/env_driver.hpp"

namespace batchrpc {
namespace {

template <class T>
void copy_rows(const std::vector<T>& from, std::vector<T>& to, std::size_t at) {
  std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

void VectorEnv::State::take(const Order& order, Result<env::StepReply> result) {
  Group& group = groups_[order.group];
  try {
    env::StepReply reply = std::move(result).value();
    std::size_t steps = 0;
    Bytes place;
    {
      const std::lock_guard lock(mutex_);
      if (group.ticket != order.ticket) return;
      steps = group.steps;
      place = group.place;
    }
    require_whole(reply, steps);
    if (place.empty()) place = place_for(order, reply.observations.size());
    if (place.empty()) {
      place = reply.observations;
    } else if (place.data() != reply.observations.data()) {
      std::memcpy(place.mutable_data(), reply.observations.data(), place.size());
    }
    reply.observations = {};
    std::unique_lock lock(mutex_);
    if (group.ticket != order.ticket) return;
    group.place = std::move(place);
    group.reply = std::move(reply);
    group.phase = Phase::ready;
    arrived_.push_back(order.group);
    wake(lock);
  } catch (...) {
    lose(worker_of(order.group), order.session, std::current_exception());
  }
}

// Throws BadMessage unless a reply is what its VectorEnv can take apart.
void VectorEnv::State::require_whole(const env::StepReply& reply, std::size_t steps) const {
  const std::size_t rows = steps * options_.envs_per_worker;
  const bool rolled_out = !reply.versions.empty();
  const auto beyond = [rows](std::uint32_t row) { return row >= rows; };
  const auto episode_beyond = [rows](const env::EpisodeEnd& end) { return end.row >= rows; };
  if (reply.observations.size() == group_bytes(steps) && reply.rewards.size() == rows &&
      reply.flags.size() == rows &&
      reply.final_observations.size() == reply.final_rows.size() * observation_bytes_ &&
      std::ranges::none_of(reply.final_rows, beyond) &&
      std::ranges::none_of(reply.episodes, episode_beyond) &&
      reply.versions.size() == (rolled_out ? steps : 0) &&
      reply.actions.size() == (rolled_out ? rows * action_bytes_ : 0) &&
      reply.extras.size() == (rolled_out ? rows * extras_ : 0)) {
    return;
  }
  throw BadMessage("VectorEnv: the answer to " + std::to_string(steps) + " steps of " +
                   std::to_string(options_.envs_per_worker) + " environments is not of that size");
}

// Where the observations of the answer to that call go; empty if to nowhere in particular. For a
// large answer asked before it is read, for a small one when it has come.
Bytes VectorEnv::State::place_for(const Order& order, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Group& group = groups_[order.group];
  if (group.ticket != order.ticket || bytes != group_bytes(group.steps)) return {};
  if (group.place.empty() && !in_order_) {
    group.place = memory_.next_place(count(Phase::pending), bytes);
  }
  return group.place;
}

EnvBatch VectorEnv::State::wait_for_buffer() {
  std::unique_lock lock(mutex_);
  in_order_ = true;
  std::size_t buffer = 0;
  if (!sent_.empty()) {
    buffer = sent_.front();
    sent_.pop_front();
  } else {  // of workers that have come back, when nothing was sent
    while (buffer < options_.buffers && !any(buffer, Phase::pending) && !any(buffer, Phase::ready))
      ++buffer;
    if (buffer == options_.buffers) throw_nothing();
  }
  wait_until(lock, [this, buffer] { return !any(buffer, Phase::pending); });
  if (!any(buffer, Phase::ready) && !any_live()) throw_nothing();
  std::vector<std::size_t> groups;
  for (std::size_t w = 0; w < worker_count(); ++w)
    groups.push_back(buffer * worker_count() + w);
  std::erase_if(arrived_, [&](std::size_t g) { return buffer_of(g) == buffer; });
  EnvBatch batch = make_batch(groups);
  memory_.taken(buffer);
  return batch;
}

EnvBatch VectorEnv::State::wait_for_groups(std::size_t min_groups) {
  std::unique_lock lock(mutex_);
  in_order_ = false;
  if (arrived_.empty() && count(Phase::pending) == 0) throw_nothing();
  wait_until(lock, [this, min_groups] {
    return arrived_.size() >= std::max<std::size_t>(min_groups, 1) || count(Phase::pending) == 0;
  });
  if (arrived_.empty() && !any_live()) throw_nothing();
  const std::vector<std::size_t> groups = std::exchange(arrived_, {});
  for (const std::size_t g : groups) {
    const std::size_t buffer = buffer_of(g);
    if (!any(buffer, Phase::pending)) std::erase(sent_, buffer);
  }
  return make_batch(groups);
}

// Of groups that are ready, and others, whose rows are not valid.
EnvBatch VectorEnv::State::make_batch(const std::vector<std::size_t>& groups) {
  EnvBatch batch;
  batch.groups = groups.size();
  batch.envs = options_.envs_per_worker;
  batch.spec = spec_;
  for (const std::size_t g : groups) {
    if (groups_[g].phase == Phase::ready)
      batch.steps = std::max<std::size_t>(batch.steps, groups_[g].steps);
  }
  const std::size_t rows = batch.rows();
  batch.rewards.resize(rows);
  batch.terminated.resize(rows);
  batch.truncated.resize(rows);
  batch.started.resize(rows);
  batch.valid.resize(rows);
  batch.env_ids.resize(batch.groups * batch.envs);
  batch.sources.resize(batch.groups);
  const bool rolled_out = std::ranges::any_of(
      groups, [this](std::size_t g) { return !groups_[g].reply.versions.empty(); });
  if (rolled_out) {
    batch.actions = Bytes::allocate(rows * action_bytes_);
    std::memset(batch.actions.mutable_data(), 0, batch.actions.size());
    batch.extras.resize(rows * extras_);
    batch.versions.resize(batch.groups * batch.steps);
  }

  std::vector<Bytes> places(batch.groups);
  std::size_t finals = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups_[groups[i]];
    if (group.phase != Phase::ready) continue;
    places[i] = group.place;
    if (group.steps < batch.steps) {  // of a worker that has come back: its row is the last step's
      const Bytes all = Bytes::allocate(group_bytes(batch.steps));
      const std::size_t before = all.size() - group.place.size();
      std::memset(all.mutable_data(), 0, before);
      std::memcpy(all.mutable_data() + before, group.place.data(), group.place.size());
      places[i] = all;
    }
    finals += group.reply.final_observations.size();
  }
  batch.observations = memory_.join(places, group_bytes(batch.steps));
  batch.final_observations = Bytes::allocate(finals);
  std::byte* next_final = batch.final_observations.mutable_data();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Bytes of_group = groups_[groups[i]].reply.final_observations;
    add_group(batch, i, groups[i]);
    if (!of_group.empty()) next_final = std::ranges::copy(of_group.span(), next_final).out;
  }
  return batch;
}

// All but the observations; the caller then has the group.
void VectorEnv::State::add_group(EnvBatch& batch, std::size_t place, std::size_t g) {
  Group& group = groups_[g];
  const std::size_t first_id = g * batch.envs;
  for (std::size_t i = 0; i < batch.envs; ++i)
    batch.env_ids[place * batch.envs + i] = static_cast<std::int64_t>(first_id + i);
  batch.sources[place] = {.worker = static_cast<std::uint32_t>(worker_of(g)),
                          .buffer = static_cast<std::uint32_t>(buffer_of(g)),
                          .session = workers_[worker_of(g)].session};
  if (group.phase != Phase::ready) return;

  const std::size_t first = (place * batch.steps + batch.steps - group.steps) * batch.envs;
  const env::StepReply& reply = group.reply;
  copy_rows(reply.rewards, batch.rewards, first);
  for (std::size_t i = 0; i < reply.flags.size(); ++i) {
    batch.terminated[first + i] = (reply.flags[i] & env::kTerminated) != 0 ? 1 : 0;
    batch.truncated[first + i] = (reply.flags[i] & env::kTruncated) != 0 ? 1 : 0;
    batch.started[first + i] = (reply.flags[i] & env::kStarted) != 0 ? 1 : 0;
    batch.valid[first + i] = 1;
  }
  for (const std::uint32_t row : reply.final_rows)
    batch.final_rows.push_back(first + row);
  for (const env::EpisodeEnd& end : reply.episodes) {
    batch.episodes.push_back({.row = first + end.row,
                              .env = static_cast<std::int64_t>(first_id + end.row % batch.envs),
                              .total_reward = end.total_reward,
                              .length = end.length});
  }
  if (!reply.versions.empty()) {
    std::memcpy(batch.actions.mutable_data() + first * action_bytes_, reply.actions.data(),
                reply.actions.size());
    copy_rows(reply.extras, batch.extras, first * extras_);
    copy_rows(reply.versions, batch.versions, first / batch.envs);
  }
  group.phase = Phase::held;
  group.reply = {};
  group.place = {};
}

}  // namespace batchrpc
