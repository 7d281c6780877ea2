#include "ppo/training.hpp"

#include <torch/torch.h>

#include <batchrpc/base/error.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "common/seconds_between.hpp"
#include "games/games.hpp"
#include "ppo/policies.hpp"
#include "ppo/random.hpp"
#include "ppo/remote_sampler.hpp"
#include "ppo/rollout_sampler.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples::ppo {
namespace {

using Clock = std::chrono::steady_clock;

// Streams of a seed, for values that must be random independently.
enum class Stream : std::uint64_t { environments, actions, minibatches };

std::uint64_t seed_of(const PpoOptions& options, Stream stream) {
  return mix(options.seed, static_cast<std::uint64_t>(stream));
}

std::shared_ptr<ActorCritic> first_network(const PpoOptions& options,
                                           const batchrpc::EnvSpec& spec) {
  torch::manual_seed(options.seed);
  return make_network(spec);
}

}  // namespace

Training::Training(const PpoOptions& options)
    : Training(options, [&options] { return make_env(options.env); }) {}

Training::Training(const PpoOptions& options, const batchrpc::EnvFactory& make)
    : Training(options, make()->spec()) {
  sampler_ = std::make_unique<LocalSampler>(make, options.envs(),
                                            seed_of(options, Stream::environments), decider());
}

Training::Training(const PpoOptions& options, batchrpc::VectorEnv& envs)
    : Training(options, envs.spec()) {
  if (options.inference == InferencePlace::worker) {
    sampler_ = std::make_unique<RolloutSampler>(
        envs,
        [this] {
          return RolloutSampler::Weights{learner_.weights(), learner_.version()};
        },
        seed_of(options, Stream::environments));
  } else {
    const bool any_worker = options.workers > 1;  // a single worker's run can be repeated
    sampler_ = std::make_unique<RemoteSampler>(envs, decider(), any_worker,
                                               seed_of(options, Stream::environments));
  }
}

Training::Training(const PpoOptions& options, const batchrpc::EnvSpec& spec)
    : options_(options),
      network_(first_network(options, spec)),
      learner_(network_, options.settings, options.total_steps,
               seed_of(options, Stream::minibatches)) {
  if (options.inference == InferencePlace::agent) {
    actor_.emplace(make_policy(options, spec, static_cast<std::size_t>(options.envs())),
                   seed_of(options, Stream::actions));
  }
}

Decide Training::decider() {
  return [this](const at::Tensor& observations) { return actor_->decide(observations); };
}

bool Training::reached() const { return options_.until && episodes_.reached(*options_.until); }

bool Training::finished() const {
  return reached() || learner_.env_steps() + options_.rows_per_update() > options_.total_steps;
}

const CurvePoint& Training::update() {
  CurvePoint point = curve_.empty() ? CurvePoint{} : curve_.back();
  const Clock::time_point begin = Clock::now();
  if (actor_) actor_->use(*network_, learner_.version());
  const std::vector<Sample> samples = sampler_->sample(options_.settings.steps);
  const Clock::time_point sampled = Clock::now();
  point.update = learner_.update(samples);
  episodes_.add(samples);
  point.version = learner_.version();
  point.env_steps = learner_.env_steps();
  point.episodes = episodes_.episodes();
  point.mean_return = episodes_.mean_return();
  point.mean_length = episodes_.mean_length();
  point.sampling_seconds += seconds_between(begin, sampled);
  point.learning_seconds += seconds_between(sampled, Clock::now());
  return curve_.emplace_back(point);
}

Training::Moment Training::moment() const {
  return {.version = learner_.version(),
          .env_steps = learner_.env_steps(),
          .optimizer_steps = learner_.optimizer().steps(),
          .drawn = actor_ ? actor_->drawn() : 0,
          .sampler = sampler_->state(),
          .weights = learner_.weights().clone(),
          .mean = learner_.optimizer().mean().clone(),
          .square = learner_.optimizer().square().clone()};
}

Checkpoint Training::checkpoint(const Moment& moment) const {
  const nlohmann::json state = {{"env_steps", moment.env_steps},
                                {"optimizer_steps", moment.optimizer_steps},
                                {"drawn", moment.drawn},
                                {"episodes", episodes_.state()},
                                {"curve", curve_}};
  return {.version = moment.version,
          .settings = training_settings(options_),
          .state = state.dump(),
          .sampler = moment.sampler,
          .weights = moment.weights,
          .mean = moment.mean,
          .square = moment.square};
}

void Training::restore(const Checkpoint& checkpoint) {
  if (checkpoint.weights.sizes() != learner_.weights().sizes()) {
    throw CheckpointError(
        "the checkpoint belongs to a network of another size: give another folder");
  }
  try {
    const auto state = nlohmann::json::parse(checkpoint.state);
    sampler_->restore(checkpoint.sampler, checkpoint.version);
    episodes_.restore(state.at("episodes"));
    curve_ = state.at("curve").get<std::vector<CurvePoint>>();
    if (actor_) actor_->set_drawn(state.at("drawn").get<std::uint64_t>());
    learner_.restore(checkpoint.version, state.at("env_steps").get<std::int64_t>(),
                     checkpoint.weights, checkpoint.mean, checkpoint.square,
                     state.at("optimizer_steps").get<std::int64_t>());
    resumed_at_ = checkpoint.version;
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(std::string("a checkpoint's state cannot be read: ") + error.what());
  } catch (const std::invalid_argument& error) {
    throw CheckpointError(std::string("a checkpoint cannot be used: ") + error.what());
  }
}

std::uint64_t Training::weights_hash() const {
  const at::Tensor& weights = learner_.weights();
  const auto* bytes = static_cast<const unsigned char*>(weights.data_ptr());
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < weights.nbytes(); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

TrainingReport Training::report() const {
  return {.curve = curve_,
          .reached = reached(),
          .weights_hash = weights_hash(),
          .resumed_at = resumed_at_};
}

TrainingReport train(Training& training, const PpoOptions& options,
                     const batchrpc::InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice) {
  std::optional<CheckpointFolder> folder;
  std::int64_t written = 0;
  if (!options.checkpoint.empty()) {
    folder.emplace(options.checkpoint);
    if (const auto checkpoint = folder->newest(training_settings(options), notice)) {
      training.restore(*checkpoint);
      written = checkpoint->version;
      const std::string path = folder->path(written);
      notice(training.finished() ? "nothing is left to do: the training has ended with " + path
                                 : "continuing from " + path);
    }
  }
  const auto write = [&](const Training::Moment& moment) {
    if (!folder || moment.version == written) return;
    folder->write(training.checkpoint(moment));
    written = moment.version;
  };
  // Called when an error or a signal ends the training.
  const auto save = [&](const std::optional<Training::Moment>& before) {
    if (!before) return notice("nothing is saved: --checkpoint was not given");
    if (before->version == 0) return notice("nothing is saved: there has been no update");
    try {
      write(*before);
      notice("the previous state is in " + folder->path(before->version));
    } catch (const CheckpointError& error) {
      notice(error.what());
    }
  };
  while (!training.finished()) {
    std::optional<Training::Moment> before;  // the state before the update
    if (folder) before = training.moment();
    if (before && before->version % options.checkpoint_every == 0) write(*before);
    if (interrupts.is_set()) {
      save(before);
      interrupts.check();
    }
    try {
      progress(training.update());
    } catch (const std::exception&) {
      save(before);
      throw;
    }
  }
  if (folder) write(training.moment());
  return training.report();
}

TrainingReport train(const PpoOptions& options, const batchrpc::InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice) {
  use_torch_threads(options.torch_threads);
  keep_freed_memory();
  Training training(options);
  return train(training, options, interrupts, progress, notice);
}

}  // namespace batchrpc_examples::ppo
