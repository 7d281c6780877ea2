#pragma once

#include <cstddef>
#include <vector>

namespace batchrpc_examples {

/// An observer's report about an episode of the agent: a fixed number of steps, in which its
/// environment may have ended and been reset several times.
struct Rollout {
  int observer = 0;  ///< the observer's index, from 0 on

  /// For every step, the discounted sum of the rewards from that step to the end of its run.
  std::vector<float> returns;

  /// The lengths of the runs that ended by themselves or by the environment's step limit, in order.
  /// Runs cut by the end of the agent's episode are not included.
  std::vector<int> finished_lengths;

  /// The steps of the first run, cut or not.
  int first_length = 0;
};

/// Collects an observer's rewards during an episode of the agent. Needs no LibTorch.
class RolloutRecorder {
 public:
  /// `observer` is copied into the report. `discount` is γ in [0, 1]; other values throw
  /// `std::invalid_argument`.
  RolloutRecorder(int observer, double discount);

  /// `run_ended`: the environment ended with this step, so the next step belongs to another run.
  void add(double reward, bool run_ended);

  [[nodiscard]] std::size_t steps() const { return rewards_.size(); }

  /// Ends the episode, which cuts the current run, and prepares for the next one.
  Rollout finish();

 private:
  int observer_;
  double discount_;
  std::vector<double> rewards_;
  std::vector<std::size_t> ends_;  // one past the last step of each run that ended
};

}  // namespace batchrpc_examples
