#include "rl_benchmark/observer.hpp"

#include <torch/torch.h>

#include <batchrpc/torch.hpp>
#include <chrono>

#include "rl_benchmark/world.hpp"

namespace rl_benchmark {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;

Observer::Observer(const rpc::Node& node, const Setting& setting, int index)
    : node_(node),
      state_size_(setting.state_size),
      index_(index),
      agent_(name_of(setting, 1 + agent_of(setting, index))),
      random_(setting.seed + static_cast<std::uint64_t>(1 + setting.agents + index)) {}

rpc::Future<ObserverEpisode> Observer::run_episode(std::int32_t steps) {
  ObserverEpisode episode;
  const at::Tensor rewards = torch::zeros(steps);
  episode.latencies.reserve(static_cast<std::size_t>(steps));
  try {
    at::Tensor state = torch::rand(state_size_);
    for (std::int32_t step = 0; step < steps && !stopped_; ++step) {
      const auto asked = Clock::now();
      auto reply = node_.call<std::int64_t(std::int32_t, at::Tensor)>(agent_, "select_action",
                                                                      index_, state);
      co_await std::move(reply);  // the environment's answer does not depend on the action
      const auto answered = Clock::now();
      if (episode.first_action_ns == 0)
        episode.first_action_ns = answered.time_since_epoch().count();
      episode.latencies.push_back(std::chrono::duration<double>(answered - asked).count());
      state = torch::rand(state_size_);
      rewards[step] = static_cast<float>(random_() % 2);
    }
  } catch (const std::exception& error) {
    episode.failure = error.what();
  }
  episode.rewards = rewards.slice(0, 0, static_cast<std::int64_t>(episode.latencies.size()));
  co_return episode;
}

}  // namespace rl_benchmark
