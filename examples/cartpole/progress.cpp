#include "cartpole/progress.hpp"

#include <array>
#include <cstdio>
#include <numeric>

#include "cartpole_observer/cartpole_env.hpp"

namespace batchrpc_examples {

void TrainingProgress::add_episode(const std::vector<Rollout>& rollouts) {
  ++episodes_;
  if (rollouts.empty()) return;
  double sum = 0;
  for (const Rollout& rollout : rollouts) {
    sum += rollout.first_length;
    window_.insert(window_.end(), rollout.finished_lengths.begin(), rollout.finished_lengths.end());
  }
  while (window_.size() > kWindow)
    window_.pop_front();
  last_reward_ = sum / static_cast<double>(rollouts.size());
  running_reward_ = 0.5 * last_reward_ + 0.5 * running_reward_;
}

double TrainingProgress::mean_length() const {
  if (window_.empty()) return 0;
  return std::accumulate(window_.begin(), window_.end(), 0.0) / static_cast<double>(window_.size());
}

bool TrainingProgress::solved() const {
  return window_.size() == kWindow && mean_length() >= CartPoleEnv::kSolvedAt;
}

std::string TrainingProgress::line() const {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "Episode %d  Last reward: %.2f  Average reward: %.2f",
                episodes_ - 1, last_reward_, running_reward_);
  return text.data();
}

}  // namespace batchrpc_examples
