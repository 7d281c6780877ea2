#include "ppo/training.hpp"

#include <torch/torch.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "games/games.hpp"
#include "ppo/random.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples::ppo {
namespace {

using Clock = std::chrono::steady_clock;

// Of a seed, for what must not be random in the same way.
enum class Stream : std::uint64_t { environments, actions, minibatches };

std::uint64_t seed_of(const PpoOptions& options, Stream stream) {
  return mix(options.seed, static_cast<std::uint64_t>(stream));
}

std::shared_ptr<ActorCritic> first_network(const PpoOptions& options,
                                           const batchrpc::EnvSpec& spec) {
  torch::manual_seed(options.seed);
  return make_network(spec);
}

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Training::Training(const PpoOptions& options)
    : Training(options, [&options] { return make_env(options.env); }) {}

Training::Training(const PpoOptions& options, const batchrpc::EnvFactory& make)
    : options_(options),
      network_(first_network(options, make()->spec())),
      actor_(network_, seed_of(options, Stream::actions)),
      sampler_(make, options.envs(), seed_of(options, Stream::environments),
               [this](const at::Tensor& observations) { return actor_.decide(observations); }),
      learner_(network_, options.settings, options.total_steps,
               seed_of(options, Stream::minibatches)) {}

bool Training::finished() const {
  return learner_.env_steps() + options_.rows_per_update() > options_.total_steps;
}

const CurvePoint& Training::update() {
  CurvePoint point = curve_.empty() ? CurvePoint{} : curve_.back();
  const Clock::time_point begin = Clock::now();
  const std::vector<Sample> samples = sampler_.sample(options_.settings.steps, learner_.version());
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

Checkpoint Training::checkpoint() const {
  const nlohmann::json state = {{"env_steps", learner_.env_steps()},
                                {"optimizer_steps", learner_.optimizer().steps()},
                                {"drawn", actor_.drawn()},
                                {"episodes", episodes_.state()},
                                {"curve", curve_}};
  return {.version = learner_.version(),
          .settings = training_settings(options_),
          .state = state.dump(),
          .sampler = sampler_.state(),
          .weights = learner_.weights().clone(),
          .mean = learner_.optimizer().mean().clone(),
          .square = learner_.optimizer().square().clone()};
}

void Training::restore(const Checkpoint& checkpoint) {
  if (checkpoint.weights.sizes() != learner_.weights().sizes()) {
    throw CheckpointError("a checkpoint is of a network of another size");
  }
  try {
    const auto state = nlohmann::json::parse(checkpoint.state);
    sampler_.restore(checkpoint.sampler);
    episodes_.restore(state.at("episodes"));
    curve_ = state.at("curve").get<std::vector<CurvePoint>>();
    actor_.set_drawn(state.at("drawn").get<std::uint64_t>());
    learner_.restore(checkpoint.version, state.at("env_steps").get<std::int64_t>(),
                     checkpoint.weights, checkpoint.mean, checkpoint.square,
                     state.at("optimizer_steps").get<std::int64_t>());
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

TrainingReport train(Training& training, const PpoOptions& options, const InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice) {
  TrainingReport report;
  std::optional<CheckpointFolder> folder;
  if (!options.checkpoint.empty()) {
    folder.emplace(options.checkpoint);
    if (const auto checkpoint = folder->newest(training_settings(options), notice)) {
      training.restore(*checkpoint);
      report.resumed_at = checkpoint->version;
      notice("goes on from " + folder->path(checkpoint->version));
    }
  }
  std::int64_t written = report.resumed_at;
  const auto reached = [&] { return options.until && training.episodes().reached(*options.until); };
  const auto write = [&](const Checkpoint& checkpoint) {
    if (!folder || checkpoint.version == written) return;
    folder->write(checkpoint);
    written = checkpoint.version;
  };
  while (!training.finished() && !reached()) {
    std::optional<Checkpoint> before;  // of the update
    if (folder) before = training.checkpoint();
    if (before && before->version % options.checkpoint_every == 0) write(*before);
    if (interrupts.is_set() && before) write(*before);
    interrupts.check();
    try {
      progress(training.update());
    } catch (const NotFinite& error) {
      if (!before || before->version == 0) throw;
      write(*before);
      throw NotFinite(std::string(error.what()) + "; the state before is in " +
                      folder->path(before->version));
    }
  }
  if (folder) write(training.checkpoint());
  report.curve = training.curve();
  report.reached = reached();
  report.weights_hash = training.weights_hash();
  return report;
}

TrainingReport train(const PpoOptions& options, const InterruptFlag& interrupts,
                     const std::function<void(const CurvePoint&)>& progress,
                     const std::function<void(const std::string&)>& notice) {
  use_one_torch_thread();
  keep_freed_memory();
  Training training(options);
  return train(training, options, interrupts, progress, notice);
}

}  // namespace batchrpc_examples::ppo
