#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "flat_parameters/flat_parameters.hpp"
#include "ppo/flat_adam.hpp"
#include "ppo/loss.hpp"
#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// A number that the training depends on is not finite; `what()` names it. The optimizer's step
/// with that number was not made.
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The results of one update; means over its optimizer steps.
struct UpdateReport {
  std::int64_t rows = 0;  ///< valid rows that it learned from
  double learning_rate = 0;
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;    ///< in nats
  double approx_kl = 0;  ///< in nats
  double clip_fraction = 0;
  double gradient_norm = 0;       ///< before clipping
  double explained_variance = 0;  ///< of the returns, by the values at sampling time; at most 1
  double version_lag = 0;         ///< mean of version() minus the version of the rows' weights
};

/// PPO's updates of a network. Not thread-safe.
class Learner {
 public:
  /// The training ends after `total_steps` steps of all environments together; an annealed learning
  /// rate is 0 then. `seed` determines the minibatches.
  Learner(std::shared_ptr<ActorCritic> network, const PpoSettings& settings,
          std::int64_t total_steps, std::uint64_t seed);

  /// Learns from samples of all groups. Invalid rows are ignored; without a valid row only the
  /// version changes. Throws NotFinite if an observation, reward, log-probability or value of a
  /// valid row is not finite; then nothing has changed. Throws NotFinite also for a loss or
  /// gradient that is not finite; then the update's earlier steps remain.
  UpdateReport update(const std::vector<Sample>& samples);

  /// The number of updates so far, which is the version of the weights.
  [[nodiscard]] std::int64_t version() const { return version_; }
  /// The number of valid rows so far.
  [[nodiscard]] std::int64_t env_steps() const { return env_steps_; }
  /// The learned weights, float32 [parameters], in one piece. Writing to it writes to the network.
  [[nodiscard]] const at::Tensor& weights() const { return parameters_.values(); }
  [[nodiscard]] const FlatAdam& optimizer() const { return adam_; }

  /// The network, as torch::save writes it to a file.
  [[nodiscard]] std::string weights_file() const;
  /// Restores the state of another learner.
  void restore(std::int64_t version, std::int64_t env_steps, const at::Tensor& weights,
               const at::Tensor& mean, const at::Tensor& square, std::int64_t optimizer_steps);

 private:
  [[nodiscard]] double learning_rate() const;
  [[nodiscard]] at::Tensor values_of(const at::Tensor& observations);
  [[nodiscard]] Rows rows_of(const std::vector<Sample>& samples, UpdateReport& report);
  void step(const Rows& rows, UpdateReport& report);

  std::shared_ptr<ActorCritic> network_;
  FlatParameters parameters_;
  FlatAdam adam_;
  PpoSettings settings_;
  std::int64_t total_steps_;
  std::uint64_t seed_;
  std::int64_t version_ = 0;
  std::int64_t env_steps_ = 0;
};

}  // namespace batchrpc_examples::ppo
