#pragma once

#include <cstddef>
#include <vector>

namespace batchrpc_examples {

/// What an observer reports to the agent after an episode of the agent's: a fixed number of steps,
/// in which its environment may have ended and begun anew any number of times.
struct Rollout {
  int observer = 0;  ///< who reports, counted from 0

  /// Of every step: the discounted sum of the rewards from that step to the end of its run.
  std::vector<float> returns;

  /// Steps of each run that ended by itself or by the environment's step limit, in order. A run cut
  /// by the end of the agent's episode is not among them.
  std::vector<int> finished_lengths;

  /// Steps of the first run, cut or not.
  int first_length = 0;
};

/// Collects an observer's rewards during an episode of the agent's. Needs no LibTorch.
class RolloutRecorder {
 public:
  /// `observer` is only passed on. `discount` is γ, in [0, 1]; throws `std::invalid_argument`
  /// beyond.
  RolloutRecorder(int observer, double discount);

  /// `run_ended`: the environment ended with this step, so the next one belongs to another run.
  void add(double reward, bool run_ended);

  [[nodiscard]] std::size_t steps() const { return rewards_.size(); }

  /// Closes the episode, a run under way being cut, and makes ready for another.
  Rollout finish();

 private:
  int observer_;
  double discount_;
  std::vector<double> rewards_;
  std::vector<std::size_t> ends_;  // of the runs that ended, each one past its last step
};

}  // namespace batchrpc_examples
