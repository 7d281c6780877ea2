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

/// A number that the training depends on is not finite: `what()` says which. The step of the
/// optimizer that it would have gone into has not been made.
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Of one update; means over its steps of the optimizer.
struct UpdateReport {
  std::int64_t rows = 0;  ///< valid ones, that were learned from
  double learning_rate = 0;
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;    ///< nats
  double approx_kl = 0;  ///< nats
  double clip_fraction = 0;
  double gradient_norm = 0;       ///< before it was clipped
  double explained_variance = 0;  ///< of the returns by the values at sampling; at most 1
  double version_lag = 0;         ///< mean of version() - that of the rows' weights
};

/// PPO's updates of a network. Not thread safe.
class Learner {
 public:
  /// `total_steps` of all environments together end the training: then the learning rate is 0 when
  /// it is annealed. Minibatches are drawn by `seed`.
  Learner(std::shared_ptr<ActorCritic> network, const PpoSettings& settings,
          std::int64_t total_steps, std::uint64_t seed);

  /// Learns from samples of all groups. Rows that are not valid count for nothing; without a valid
  /// one only the version changes. Throws NotFinite when an observation, reward, log-probability or
  /// value of a valid row is not finite, with nothing changed, and when a loss or gradient is not,
  /// with what the update did before.
  UpdateReport update(const std::vector<Sample>& samples);

  /// How many updates there have been: the version of the weights.
  [[nodiscard]] std::int64_t version() const { return version_; }
  /// Valid rows that it has had.
  [[nodiscard]] std::int64_t env_steps() const { return env_steps_; }
  /// float32 [parameters], what is learned, in one piece. To write to it is to write to the
  /// network.
  [[nodiscard]] const at::Tensor& weights() const { return parameters_.values(); }
  [[nodiscard]] const FlatAdam& optimizer() const { return adam_; }

  /// The network, as torch::save writes it to a file.
  [[nodiscard]] std::string weights_file() const;
  /// To where another learner was.
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
