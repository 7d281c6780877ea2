#pragma once

#include <batchrpc/env.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "ppo/checkpoint.hpp"
#include "ppo/curve.hpp"
#include "ppo/episodes.hpp"
#include "ppo/learner.hpp"
#include "ppo/local_sampler.hpp"
#include "ppo/options.hpp"

namespace batchrpc_examples::ppo {

/// The results of a training.
struct TrainingReport {
  std::vector<CurvePoint> curve{};
  bool reached = false;  ///< whether the target mean return was reached
  std::uint64_t weights_hash = 0;
  std::int64_t resumed_at = 0;  ///< the version of the checkpoint; 0: started from the beginning
  std::string error{};          ///< the error that ended it early; empty: none
};

/// A training, run update by update. Not thread-safe.
class Training {
 public:
  /// Seeds LibTorch's default generator, which draws the network's first weights. Throws
  /// batchrpc::InvalidArgument for an environment that PPO cannot learn.
  explicit Training(const PpoOptions& options);
  /// The same with environments of the program's own; `options.env` is only their name.
  Training(const PpoOptions& options, const batchrpc::EnvFactory& make);
  /// The same with environments of workers, which must outlive it.
  Training(const PpoOptions& options, batchrpc::VectorEnv& envs);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Samples, and learns from the samples. Throws NotFinite, and PeerLost if all workers are lost.
  /// Afterwards only an earlier moment() can be used.
  const CurvePoint& update();
  /// Whether another update would exceed the number of steps, or the target mean return is reached.
  [[nodiscard]] bool finished() const;

  /// The state that an update changes even if it fails; cheap to copy.
  struct Moment {
    std::int64_t version = 0;
    std::int64_t env_steps = 0;
    std::int64_t optimizer_steps = 0;
    std::uint64_t drawn = 0;
    std::string sampler;
    at::Tensor weights;
    at::Tensor mean;
    at::Tensor square;
  };
  [[nodiscard]] Moment moment() const;
  /// A checkpoint of a moment since which no update has succeeded. It can be written, or restored
  /// in a training with the same options.
  [[nodiscard]] Checkpoint checkpoint(const Moment& moment) const;
  /// Throws CheckpointError if the checkpoint does not fit.
  void restore(const Checkpoint& checkpoint);

  [[nodiscard]] const std::vector<CurvePoint>& curve() const { return curve_; }
  /// The results so far, even if the last update has failed.
  [[nodiscard]] TrainingReport report() const;
  [[nodiscard]] const Learner& learner() const { return learner_; }
  /// FNV-1a of the weights' bytes: equal for equal trainings.
  [[nodiscard]] std::uint64_t weights_hash() const;

 private:
  [[nodiscard]] bool reached() const;
  // Makes a training without a sampler.
  Training(const PpoOptions& options, const batchrpc::EnvSpec& spec);
  [[nodiscard]] Decide decider();

  PpoOptions options_;
  std::shared_ptr<ActorCritic> network_;
  std::optional<Actor> actor_;  // if inference is in this process
  Learner learner_;
  std::unique_ptr<Sampler> sampler_;
  EpisodeStatistics episodes_;
  std::vector<CurvePoint> curve_;
  std::int64_t resumed_at_ = 0;
};

/// Trains as the options say. It continues from a checkpoint if there is one, and writes
/// checkpoints. `progress` is called after each update, `notice` with messages for the user.
///
/// If an update fails (NotFinite, PeerLost) or a signal arrives (batchrpc::Interrupted), it writes
/// the state before as a checkpoint and rethrows. Throws CheckpointError if a checkpoint cannot be
/// read or written.
TrainingReport train(Training& training, const PpoOptions& options,
                     const batchrpc::InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice);
/// The same with a new training.
TrainingReport train(const PpoOptions& options, const batchrpc::InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice);

}  // namespace batchrpc_examples::ppo
