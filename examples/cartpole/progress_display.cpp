#include "cartpole/progress_display.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <utility>

namespace batchrpc_examples {

using Clock = std::chrono::steady_clock;

EpisodeRecord make_record(const TrainingProgress& progress, const std::vector<Rollout>& rollouts) {
  EpisodeRecord record;
  record.episode = progress.episodes() - 1;
  record.observers = static_cast<int>(rollouts.size());
  for (const Rollout& rollout : rollouts)
    record.env_steps += static_cast<std::int64_t>(rollout.returns.size());
  record.last_reward = progress.last_reward();
  record.running_reward = progress.running_reward();
  record.mean_length = progress.mean_length();
  return record;
}

ProgressDisplay::ProgressDisplay(ProgressMode mode)
    : mode_(mode), terminal_(::isatty(STDOUT_FILENO) == 1) {}

ProgressDisplay::~ProgressDisplay() { end_line(); }

std::string ProgressDisplay::live_line(const EpisodeRecord& record) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "Episode %d | %.0f env steps/s | last reward %.1f | average %.1f | last 100 runs "
                "%.1f",
                record.episode, record.env_steps_per_s(), record.last_reward, record.running_reward,
                record.mean_length);
  return text.data();
}

void ProgressDisplay::episode(const EpisodeRecord& record, const TrainingProgress& progress) {
  if (mode_ == ProgressMode::lines) {
    std::cout << progress.line() << std::endl;
  } else if (mode_ == ProgressMode::live && terminal_) {
    line_ = live_line(record);
    std::cout << "\r\033[K" << line_ << std::flush;
  } else if (mode_ == ProgressMode::live) {
    unprinted_ = live_line(record);
    if (Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::seconds(1);
    end_line();
  }
}

void ProgressDisplay::notice(const std::string& line) {
  if (!line_.empty()) std::cout << "\r\033[K" << std::flush;
  std::cerr << "Notice: " << line << std::endl;
  if (!line_.empty()) std::cout << line_ << std::flush;
}

void ProgressDisplay::end_line() {
  if (!std::exchange(line_, {}).empty()) std::cout << std::endl;
  if (!unprinted_.empty()) std::cout << std::exchange(unprinted_, {}) << std::endl;
}

}  // namespace batchrpc_examples
