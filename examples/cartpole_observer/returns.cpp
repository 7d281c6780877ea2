#include "cartpole_observer/returns.hpp"

#include <stdexcept>

namespace batchrpc_examples {

RolloutRecorder::RolloutRecorder(int observer, double discount)
    : observer_(observer), discount_(discount) {
  if (!(discount >= 0 && discount <= 1)) {
    throw std::invalid_argument("the discount must be in [0, 1]");
  }
}

void RolloutRecorder::add(double reward, bool run_ended) {
  rewards_.push_back(reward);
  if (run_ended) ends_.push_back(rewards_.size());
}

Rollout RolloutRecorder::finish() {
  Rollout rollout;
  rollout.observer = observer_;
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    rollout.finished_lengths.push_back(static_cast<int>(end - begin));
    begin = end;
  }
  rollout.first_length =
      ends_.empty() ? static_cast<int>(rewards_.size()) : rollout.finished_lengths.front();

  rollout.returns.resize(rewards_.size());
  double sum = 0;
  std::size_t runs_left = ends_.size();
  for (std::size_t i = rewards_.size(); i-- > 0;) {
    if (runs_left > 0 && ends_[runs_left - 1] == i + 1) {
      sum = 0;
      --runs_left;
    }
    sum = rewards_[i] + discount_ * sum;
    rollout.returns[i] = static_cast<float>(sum);
  }
  rewards_.clear();
  ends_.clear();
  return rollout;
}

}  // namespace batchrpc_examples
