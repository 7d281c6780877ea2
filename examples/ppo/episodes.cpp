#include "ppo/episodes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace batchrpc_examples::ppo {

void EpisodeStatistics::add_row(Episode& running, double reward, bool ended) {
  running.reward_sum += reward;
  ++running.length;
  if (!ended) return;
  window_.push_back(running);
  if (window_.size() > kWindow) window_.pop_front();
  ++episodes_;
  running = {};
}

void EpisodeStatistics::add(const std::vector<Sample>& samples) {
  running_.resize(samples.size());
  std::int64_t steps = 0;
  for (std::size_t group = 0; group < samples.size(); ++group) {
    if (samples[group].begun_anew) running_[group].clear();
    running_[group].resize(static_cast<std::size_t>(samples[group].envs()));
    steps = std::max(steps, samples[group].steps());
  }
  for (std::int64_t t = 0; t < steps; ++t) {  // so that episodes are in the order of their ends
    for (std::size_t group = 0; group < samples.size(); ++group) {
      const Sample& sample = samples[group];
      if (t >= sample.steps()) continue;
      const auto rewards = sample.rewards.accessor<float, 2>()[t];
      const auto terminated = sample.terminated.accessor<bool, 2>()[t];
      const auto truncated = sample.truncated.accessor<bool, 2>()[t];
      const auto valid = sample.valid.accessor<bool, 2>()[t];
      for (std::int64_t n = 0; n < sample.envs(); ++n) {
        Episode& running = running_[group][static_cast<std::size_t>(n)];
        if (valid[n]) {
          add_row(running, rewards[n], terminated[n] || truncated[n]);
        } else {
          running = {};
        }
      }
    }
  }
}

double EpisodeStatistics::mean_return() const {
  double sum = 0;
  for (const Episode& episode : window_)
    sum += episode.reward_sum;
  return window_.empty() ? 0 : sum / static_cast<double>(window_.size());
}

double EpisodeStatistics::mean_length() const {
  double sum = 0;
  for (const Episode& episode : window_)
    sum += static_cast<double>(episode.length);
  return window_.empty() ? 0 : sum / static_cast<double>(window_.size());
}

nlohmann::json EpisodeStatistics::state() const {
  const auto list = [](const auto& episodes) {
    nlohmann::json all = nlohmann::json::array();
    for (const Episode& each : episodes)
      all.push_back({each.reward_sum, each.length});
    return all;
  };
  nlohmann::json groups = nlohmann::json::array();
  for (const auto& group : running_)
    groups.push_back(list(group));
  return {{"episodes", episodes_}, {"last", list(window_)}, {"running", groups}};
}

void EpisodeStatistics::restore(const nlohmann::json& state) {
  const auto episode = [](const nlohmann::json& pair) {
    return Episode{pair.at(0).get<double>(), pair.at(1).get<std::int64_t>()};
  };
  *this = {};
  episodes_ = state.at("episodes").get<std::int64_t>();
  for (const auto& pair : state.at("last"))
    window_.push_back(episode(pair));
  for (const auto& group : state.at("running")) {
    running_.emplace_back();
    for (const auto& pair : group)
      running_.back().push_back(episode(pair));
  }
}

}  // namespace batchrpc_examples::ppo
