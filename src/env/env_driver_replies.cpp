#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "env/batch_assembly.hpp"
#include "env/env_driver.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

void VectorEnv::State::take(const Order& order, Result<env::StepReply> result) {
  Group& group = groups_[order.group];
  const std::size_t worker = worker_of(order.group);
  try {
    env::StepReply reply = std::move(result).value();
    require_whole(reply, order.wanted);
    std::vector<std::uint8_t> resting = resting_after(reply);
    Bytes place = place_for(order, reply.observations.size());
    if (place.empty()) {
      place = reply.observations;
    } else if (place.data() != reply.observations.data()) {
      std::memcpy(place.mutable_data(), reply.observations.data(), place.size());
    }
    reply.observations = {};
    std::unique_lock lock(mutex_);
    if (closed_ || group.ticket != order.ticket) return;
    workers_[worker].pause = Duration::zero();
    group.place = std::move(place);
    group.reply = std::move(reply);
    group.resting = std::move(resting);
    group.phase = Phase::ready;
    arrived_.push_back(order.group);
    wake(lock);
  } catch (...) {
    std::unique_lock lock(mutex_);
    if (closed_ || group.ticket != order.ticket) return;
    lose(std::move(lock), worker, std::current_exception());
  }
}

// Throws BadMessage unless a reply is what was asked for.
void VectorEnv::State::require_whole(const env::StepReply& reply, const Wanted& wanted) const {
  const std::size_t rows = wanted.steps * options_.envs_per_worker;
  const auto beyond = [rows](std::uint32_t row) { return row >= rows; };
  const auto episode_beyond = [rows](const env::EpisodeEnd& end) { return end.row >= rows; };
  const std::size_t acted = wanted.rollout ? rows : 0;
  if (reply.observations.size() == group_bytes(wanted.steps) && reply.rewards.size() == rows &&
      reply.flags.size() == rows &&
      reply.final_observations.size() == reply.final_rows.size() * shape_.observation_bytes &&
      std::ranges::none_of(reply.final_rows, beyond) &&
      std::ranges::none_of(reply.episodes, episode_beyond) &&
      reply.versions.size() == (wanted.rollout ? wanted.steps : 0) &&
      reply.actions.size() == acted * shape_.action_bytes &&
      reply.extras.size() == acted * shape_.extras) {
    return;
  }
  throw BadMessage("VectorEnv: the answer to " +
                   std::string(wanted.rollout ? "a rollout of " : "") +
                   std::to_string(wanted.steps) + " steps of " +
                   std::to_string(options_.envs_per_worker) + " environments is not of that size");
}

std::vector<std::uint8_t> VectorEnv::State::resting_after(const env::StepReply& reply) const {
  std::vector<std::uint8_t> resting;
  if (options_.autoreset != Autoreset::next_step || reply.episodes.empty()) return resting;
  const auto last = std::span(reply.flags).last(options_.envs_per_worker);
  for (const std::uint8_t flags : last)
    resting.push_back((flags & (env::kTerminated | env::kTruncated)) != 0 ? 1 : 0);
  return resting;
}

// Where the observations of the answer to that call go; empty if to nowhere in particular. For a
// large answer asked before it is read, for a small one when it has come.
Bytes VectorEnv::State::place_for(const Order& order, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Group& group = groups_[order.group];
  if (group.ticket != order.ticket || bytes != group_bytes(order.wanted.steps)) return {};
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
  std::erase(sent_, buffer);  // sent anew meanwhile, to a worker that is back
  if (!any(buffer, Phase::ready) && !any_live()) throw_nothing();
  std::vector<std::size_t> groups;
  for (std::size_t w = 0; w < worker_count(); ++w)
    groups.push_back(buffer * worker_count() + w);
  std::erase_if(arrived_, [&](std::size_t g) { return buffer_of(g) == buffer; });
  return give_out(std::move(lock), groups);
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
  return give_out(std::move(lock), groups);
}

// Of groups that are ready, which the caller then has, and others, whose rows are not valid.
EnvBatch VectorEnv::State::give_out(std::unique_lock<std::mutex> lock,
                                    const std::vector<std::size_t>& groups) {
  std::vector<env::BatchPart> parts;
  for (const std::size_t g : groups) {
    Group& group = groups_[g];
    const std::size_t worker = worker_of(g);
    memory_.taken(buffer_of(g));
    parts.push_back({.source = {.worker = static_cast<std::uint32_t>(worker),
                                .buffer = static_cast<std::uint32_t>(buffer_of(g))},
                     .first_id = g * options_.envs_per_worker});
    if (group.phase != Phase::ready) continue;
    group.phase = Phase::held;
    env::BatchPart& part = parts.back();
    part.source.session = workers_[worker].epoch;
    part.source.turn = group.ticket;
    part.steps = group.wanted.steps;
    part.rollout = group.wanted.rollout;
    part.observations = std::exchange(group.place, {});
    part.reply = std::exchange(group.reply, {});
  }
  lock.unlock();
  return env::assemble(parts, shape_, spec_, *core_->payload_memory());
}

}  // namespace batchrpc
