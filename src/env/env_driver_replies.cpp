#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "env/batch_assembly.hpp"
#include "env/env_driver.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

using env::GroupPhase;

void VectorEnv::State::take(const Order& order, Result<env::StepReply> result) {
  Deferred todo;
  try {
    todo = take_reply(order, std::move(result).value());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (closed_ || !groups_.awaits(order.group, order.ticket)) return;
    todo = lose(worker_of(order.group), std::current_exception());
  }
  perform(std::move(todo));
}

VectorEnv::State::Deferred VectorEnv::State::take_reply(const Order& order, env::StepReply reply) {
  require_whole(reply, order.wanted);
  std::vector<std::uint8_t> resting = resting_after(reply);
  Bytes place = place_for(order, reply.observations.size());
  if (place.empty()) {
    place = reply.observations;
  } else if (place.data() != reply.observations.data()) {
    std::memcpy(place.mutable_data(), reply.observations.data(), place.size());
  }
  reply.observations = {};
  const std::lock_guard lock(mutex_);
  if (closed_ || !groups_.answered(order.group, order.ticket, std::move(reply), std::move(place),
                                   std::move(resting))) {
    return {};
  }
  workers_[worker_of(order.group)].pause = Duration::zero();
  return {.wakes = waiter_.take_if_true()};
}

// Throws BadMessage unless the reply matches the request.
void VectorEnv::State::require_whole(const env::StepReply& reply, const env::Wanted& wanted) const {
  const env::StepShape& shape = description_.shape();
  const std::size_t rows = wanted.steps * options_.envs_per_worker;
  const auto beyond = [rows](std::uint32_t row) { return row >= rows; };
  const auto episode_beyond = [rows](const env::EpisodeEnd& end) { return end.row >= rows; };
  const std::size_t acted = wanted.rollout ? rows : 0;
  if (reply.observations.size() == description_.observation_bytes(wanted.steps) &&
      reply.rewards.size() == rows && reply.flags.size() == rows &&
      reply.final_observations.size() == reply.final_rows.size() * shape.observation_bytes &&
      std::ranges::none_of(reply.final_rows, beyond) &&
      std::ranges::none_of(reply.episodes, episode_beyond) &&
      reply.versions.size() == (wanted.rollout ? wanted.steps : 0) &&
      reply.actions.size() == acted * shape.action_bytes &&
      reply.extras.size() == acted * shape.extras) {
    return;
  }
  throw BadMessage("VectorEnv: the answer to " +
                   std::string(wanted.rollout ? "a rollout of " : "") +
                   std::to_string(wanted.steps) + " steps of " +
                   std::to_string(options_.envs_per_worker) + " environments has another size");
}

std::vector<std::uint8_t> VectorEnv::State::resting_after(const env::StepReply& reply) const {
  std::vector<std::uint8_t> resting;
  if (options_.autoreset != Autoreset::next_step || reply.episodes.empty()) return resting;
  const auto last = std::span(reply.flags).last(options_.envs_per_worker);
  for (const std::uint8_t flags : last)
    resting.push_back((flags & (env::kTerminated | env::kTruncated)) != 0 ? 1 : 0);
  return resting;
}

// Empty if they need no particular place.
Bytes VectorEnv::State::place_for(const Order& order, std::size_t bytes) {
  if (bytes != description_.observation_bytes(order.wanted.steps)) return {};
  const std::lock_guard lock(mutex_);
  return groups_.place_for(order.group, order.ticket, bytes);
}

EnvBatch VectorEnv::State::wait_for_buffer() {
  std::size_t buffer = 0;
  {
    const std::lock_guard lock(mutex_);
    groups_.receive_in_order(true);
    const std::optional<std::size_t> next = groups_.next_buffer();
    if (!next) throw_nothing();
    buffer = *next;
  }
  std::vector<env::BatchPart> parts;
  {
    const auto lock =
        lock_when([this, buffer] { return !groups_.any(buffer, GroupPhase::pending); });
    const std::vector<std::size_t> groups = groups_.take_buffer(buffer);
    if (!groups_.any(buffer, GroupPhase::ready) && !any_live()) throw_nothing();
    parts = give_out(groups);
  }
  return env::assemble(parts, description_.shape(), description_.spec(), *core_->payload_memory());
}

EnvBatch VectorEnv::State::wait_for_groups(std::size_t min_groups) {
  {
    const std::lock_guard lock(mutex_);
    groups_.receive_in_order(false);
    if (groups_.arrived() == 0 && groups_.count(GroupPhase::pending) == 0) throw_nothing();
  }
  std::vector<env::BatchPart> parts;
  {
    const auto lock = lock_when([this, least = std::max<std::size_t>(min_groups, 1)] {
      return groups_.arrived() >= least || groups_.count(GroupPhase::pending) == 0;
    });
    if (groups_.arrived() == 0 && !any_live()) throw_nothing();
    parts = give_out(groups_.take_arrived());
  }
  return env::assemble(parts, description_.shape(), description_.spec(), *core_->payload_memory());
}

// Returns the parts of groups, giving ready ones to the caller. The others have no valid rows.
std::vector<env::BatchPart> VectorEnv::State::give_out(const std::vector<std::size_t>& groups) {
  std::vector<env::BatchPart> parts;
  for (const std::size_t g : groups) {
    env::BatchPart& part = parts.emplace_back(groups_.give_out(g));
    part.first_id = g * options_.envs_per_worker;
    if (part.steps > 0) part.source.session = workers_[worker_of(g)].epoch;
  }
  return parts;
}

}  // namespace batchrpc
