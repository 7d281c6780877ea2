#pragma once

#include <batchrpc/env.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "ppo/checkpoint.hpp"
#include "ppo/curve.hpp"
#include "ppo/episodes.hpp"
#include "ppo/learner.hpp"
#include "ppo/local_sampler.hpp"
#include "ppo/options.hpp"

namespace batchrpc_examples::ppo {

/// What a training came to.
struct TrainingReport {
  std::vector<CurvePoint> curve{};
  bool reached = false;  ///< the mean return that was to be reached
  std::uint64_t weights_hash = 0;
  std::int64_t resumed_at = 0;  ///< the version of the checkpoint; 0: begun anew
  std::string error{};          ///< by which it ended early; empty: by none
};

/// A training, update by update. Not thread safe.
class Training {
 public:
  /// Seeds LibTorch's default generator, from which the network's first weights are drawn. Throws
  /// batchrpc::InvalidArgument for an environment that PPO cannot learn.
  explicit Training(const PpoOptions& options);
  /// The same in environments of the program's own; `options.env` is but their name.
  Training(const PpoOptions& options, const batchrpc::EnvFactory& make);
  /// The same in environments of workers, which outlive it.
  Training(const PpoOptions& options, batchrpc::VectorEnv& envs);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Samples and learns from it. Throws NotFinite, and PeerLost when all workers are lost; then
  /// only a moment() from before is of use.
  const CurvePoint& update();
  /// Whether another update would pass the number of steps, or the mean return is reached that was
  /// to be.
  [[nodiscard]] bool finished() const;

  /// What an update changes also when it fails, at little cost.
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
  /// Of a moment since which no update has succeeded: to be written, or restored in a training of
  /// the same options.
  [[nodiscard]] Checkpoint checkpoint(const Moment& moment) const;
  /// Throws CheckpointError when it does not fit.
  void restore(const Checkpoint& checkpoint);

  [[nodiscard]] const std::vector<CurvePoint>& curve() const { return curve_; }
  /// What it has come to; also of one whose last update has failed.
  [[nodiscard]] TrainingReport report() const;
  [[nodiscard]] const Learner& learner() const { return learner_; }
  /// FNV-1a of the weights' bytes: equal for trainings that went alike.
  [[nodiscard]] std::uint64_t weights_hash() const;

 private:
  [[nodiscard]] bool reached() const;
  // Without a sampler.
  Training(const PpoOptions& options, const batchrpc::EnvSpec& spec);
  [[nodiscard]] Decide decider();

  PpoOptions options_;
  std::shared_ptr<ActorCritic> network_;
  std::optional<Actor> actor_;  // where inference is here
  Learner learner_;
  std::unique_ptr<Sampler> sampler_;
  EpisodeStatistics episodes_;
  std::vector<CurvePoint> curve_;
  std::int64_t resumed_at_ = 0;
};

/// Trains as the options say: goes on from a checkpoint if there is one, and writes them.
/// `progress` is called after each update, `notice` with what people should know. When an update
/// fails, as by NotFinite or PeerLost, or a signal comes (Interrupted), the state before is written
/// as a checkpoint and then that is thrown; CheckpointError when a checkpoint cannot be read or
/// written.
TrainingReport train(Training& training, const PpoOptions& options, const InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice);
/// The same of a new training.
TrainingReport train(const PpoOptions& options, const InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice);

}  // namespace batchrpc_examples::ppo
