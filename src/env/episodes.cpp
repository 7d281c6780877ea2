#include "env/episodes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace batchrpc::env {

Episodes::Episodes(std::unique_ptr<EnvGroup> group, Autoreset autoreset)
    : group_(std::move(group)),
      autoreset_(autoreset),
      observation_bytes_(group_->spec().observation.bytes()),
      resting_(group_->size()),
      total_rewards_(group_->size()),
      lengths_(group_->size()),
      terminated_(group_->size()),
      truncated_(group_->size()) {
  to_reset_.reserve(group_->size());
}

void Episodes::begin(std::optional<std::uint64_t> seed, const EpisodeRows& rows) {
  to_reset_.resize(size());
  std::iota(to_reset_.begin(), to_reset_.end(), 0U);
  std::vector<std::uint64_t> seeds;
  if (seed) {
    seeds.resize(size());
    std::iota(seeds.begin(), seeds.end(), *seed);
  }
  group_->reset(to_reset_, seeds, rows.observations);
  std::ranges::fill(rows.rewards, 0.0F);
  std::ranges::fill(rows.flags, kStarted);
  std::ranges::fill(resting_, std::uint8_t{0});
  std::ranges::fill(total_rewards_, 0.0);
  std::ranges::fill(lengths_, 0U);
}

void Episodes::step(std::span<const std::byte> actions, const EpisodeRows& rows,
                    EpisodeEnds& ends) {
  group_->step(actions, resting_,
               {.observations = rows.observations,
                .rewards = rows.rewards,
                .terminated = terminated_,
                .truncated = truncated_});
  to_reset_.clear();
  for (std::size_t i = 0; i < size(); ++i) {
    if (resting_[i] != 0) {
      resting_[i] = 0;
      rows.rewards[i] = 0;
      rows.flags[i] = kStarted;
      to_reset_.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    total_rewards_[i] += rows.rewards[i];
    ++lengths_[i];
    rows.flags[i] = static_cast<std::uint8_t>((terminated_[i] != 0 ? kTerminated : 0) |
                                              (truncated_[i] != 0 ? kTruncated : 0));
    if (rows.flags[i] == 0) continue;
    ends.episodes.push_back({.row = rows.first_row + static_cast<std::uint32_t>(i),
                             .length = std::exchange(lengths_[i], 0U),
                             .total_reward = std::exchange(total_rewards_[i], 0.0)});
    if (autoreset_ == Autoreset::next_step) {
      resting_[i] = 1;
    } else {
      keep_final(i, rows, ends);
      to_reset_.push_back(static_cast<std::uint32_t>(i));
    }
  }
  if (!to_reset_.empty()) group_->reset(to_reset_, {}, rows.observations);
}

void Episodes::keep_final(std::size_t i, const EpisodeRows& rows, EpisodeEnds& ends) const {
  const auto last = rows.observations.subspan(i * observation_bytes_, observation_bytes_);
  ends.final_rows.push_back(rows.first_row + static_cast<std::uint32_t>(i));
  ends.final_observations.insert(ends.final_observations.end(), last.begin(), last.end());
}

}  // namespace batchrpc::env
