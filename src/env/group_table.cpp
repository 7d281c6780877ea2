#include "env/group_table.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc::env {

std::size_t GroupTable::count(GroupPhase phase) const noexcept {
  return static_cast<std::size_t>(std::ranges::count(groups_, phase, &Group::phase));
}

bool GroupTable::any(std::size_t buffer, GroupPhase phase) const noexcept {
  for (std::size_t w = 0; w < workers_; ++w) {
    if (groups_[buffer * workers_ + w].phase == phase) return true;
  }
  return false;
}

std::uint64_t GroupTable::order(std::size_t g, const Wanted& wanted, std::size_t bytes) {
  const std::size_t buffer = buffer_of(g);
  Group& group = groups_[g];
  group.place = {};
  if (in_order_) group.place = memory_.place_in(buffer, worker_of(g), workers_, bytes);
  group.phase = GroupPhase::pending;
  ++group.ticket;
  group.wanted = wanted;
  group.reply = {};
  if (std::ranges::find(sent_, buffer) == sent_.end()) sent_.push_back(buffer);
  return group.ticket;
}

Bytes GroupTable::place_for(std::size_t g, std::uint64_t ticket, std::size_t bytes) {
  Group& group = groups_[g];
  if (group.ticket != ticket) return {};
  if (group.place.empty() && !in_order_) {
    group.place = memory_.next_place(count(GroupPhase::pending), bytes);
  }
  return group.place;
}

bool GroupTable::answered(std::size_t g, std::uint64_t ticket, StepReply reply, Bytes place,
                          std::vector<std::uint8_t> resting) {
  Group& group = groups_[g];
  if (group.ticket != ticket) return false;
  group.place = std::move(place);
  group.reply = std::move(reply);
  group.resting = std::move(resting);
  group.phase = GroupPhase::ready;
  arrived_.push_back(g);
  return true;
}

void GroupTable::begin(std::size_t worker) {
  for (std::size_t g = worker; g < groups_.size(); g += workers_)
    groups_[g].phase = GroupPhase::held;
}

void GroupTable::lose(std::size_t worker) {
  for (std::size_t g = worker; g < groups_.size(); g += workers_) {
    Group& group = groups_[g];
    group.phase = GroupPhase::lost;
    ++group.ticket;
    group.place = {};
    group.reply = {};
    group.resting.clear();
  }
  std::erase_if(arrived_, [&](std::size_t g) { return worker_of(g) == worker; });
}

void GroupTable::start_over() {
  sent_.clear();
  arrived_.clear();
}

std::optional<std::size_t> GroupTable::next_buffer() {
  if (!sent_.empty()) {
    const std::size_t first = sent_.front();
    sent_.pop_front();
    return first;
  }
  for (std::size_t buffer = 0; buffer < groups_.size() / workers_; ++buffer) {
    if (any(buffer, GroupPhase::pending) || any(buffer, GroupPhase::ready)) return buffer;
  }
  return std::nullopt;
}

std::vector<std::size_t> GroupTable::take_buffer(std::size_t buffer) {
  std::erase(sent_, buffer);  // it may have been sent again, to a worker that is back
  std::erase_if(arrived_, [&](std::size_t g) { return buffer_of(g) == buffer; });
  std::vector<std::size_t> groups;
  for (std::size_t w = 0; w < workers_; ++w)
    groups.push_back(buffer * workers_ + w);
  return groups;
}

std::vector<std::size_t> GroupTable::take_arrived() {
  std::vector<std::size_t> groups = std::exchange(arrived_, {});
  for (const std::size_t g : groups) {
    const std::size_t buffer = buffer_of(g);
    if (!any(buffer, GroupPhase::pending)) std::erase(sent_, buffer);
  }
  return groups;
}

BatchPart GroupTable::give_out(std::size_t g) {
  Group& group = groups_[g];
  memory_.taken(buffer_of(g));
  BatchPart part{.source = {.worker = static_cast<std::uint32_t>(worker_of(g)),
                            .buffer = static_cast<std::uint32_t>(buffer_of(g))}};
  if (group.phase != GroupPhase::ready) return part;
  group.phase = GroupPhase::held;
  part.source.turn = group.ticket;
  part.steps = group.wanted.steps;
  part.rollout = group.wanted.rollout;
  part.observations = std::exchange(group.place, {});
  part.reply = std::exchange(group.reply, {});
  return part;
}

}  // namespace batchrpc::env
