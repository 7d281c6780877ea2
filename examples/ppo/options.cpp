#include "ppo/options.hpp"

#include <CLI/App.hpp>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include "common/command_line.hpp"
#include "common/option_checks.hpp"
#include "games/games.hpp"

namespace batchrpc_examples::ppo {
namespace {

constexpr int kMostWorkers = 1000;
constexpr int kMostEnvs = 65'536;  // limit of an EnvWorker and of a policy's batch
constexpr std::int64_t kMostSteps = 1'000'000'000'000;
constexpr int kEnvs = 64;  // default for all workers together
constexpr int kWorkers = 4;

const std::map<std::string, InferencePlace> kInferencePlaces{{"agent", InferencePlace::agent},
                                                             {"worker", InferencePlace::worker}};
const std::map<std::string, bool> kSwitch{{"false", false}, {"true", true}};
const std::map<std::string, PolicyKind> kPolicyKinds{{"eager", PolicyKind::eager},
                                                     {"script", PolicyKind::script},
                                                     {"compiled", PolicyKind::compiled}};

// Options whose default depends on the environment, until they are given.
struct Given {
  std::optional<int> envs_per_worker{};
  std::optional<std::int64_t> total_steps{};
  std::optional<std::int64_t> steps{};
  std::optional<std::int64_t> epochs{};
  std::optional<std::int64_t> minibatches{};
  std::optional<double> learning_rate{};
  std::optional<bool> anneal{};
  std::optional<double> gamma{};
  std::optional<double> gae_lambda{};
  std::optional<double> clip{};
  std::optional<bool> clip_values{};
  std::optional<double> entropy{};
  std::optional<double> value_coefficient{};
  std::optional<double> max_gradient_norm{};
  std::optional<bool> normalize_advantages{};
};

void add_settings(CLI::App& app, Given& given) {
  const std::string group = "Algorithm (defaults are tuned for the environment)";
  const auto add = [&](const char* name, auto& value, const char* text, auto check) {
    app.add_option(name, value, text)->check(check)->group(group);
  };
  add("--steps", given.steps, "steps of each environment between two updates",
      between<std::int64_t>(1, 1'000'000));
  add("--epochs", given.epochs, "passes of an update over the samples",
      between<std::int64_t>(1, 1000));
  add("--minibatches", given.minibatches, "minibatches per epoch",
      between<std::int64_t>(1, 1'000'000));
  add("--learning-rate", given.learning_rate, "learning rate of Adam", between(1e-9, 1.0));
  add("--gamma", given.gamma, "discount factor per step", between(0.0, 1.0));
  add("--gae-lambda", given.gae_lambda, "lambda of the advantage estimation", between(0.0, 1.0));
  add("--clip", given.clip, "clipping range of the probability ratio", between(1e-6, 100.0));
  add("--entropy", given.entropy, "coefficient of the entropy bonus", between(0.0, 100.0));
  add("--value-coefficient", given.value_coefficient, "coefficient of the value loss",
      between(0.0, 100.0));
  add("--max-gradient-norm", given.max_gradient_norm,
      "longer gradients are scaled down to this norm", between(1e-9, 1e9));
  const auto add_switch = [&](const char* name, std::optional<bool>& value, const char* text) {
    app.add_option(name, value, text)->transform(one_of(kSwitch))->group(group);
  };
  add_switch("--anneal", given.anneal, "reduce the learning rate linearly to 0");
  add_switch("--clip-values", given.clip_values, "keep values near those at sampling");
  add_switch("--normalize-advantages", given.normalize_advantages,
             "normalize advantages in each minibatch");
}

std::int64_t default_total_steps(const std::string& env) {
  return env == "cartpole" ? 150'000 : 5'000'000;
}

void complete(PpoOptions& options, const Given& given) {
  (void)make_env(options.env);  // throws for another name
  const int workers = std::max(options.workers, 1);
  options.envs_per_worker = given.envs_per_worker.value_or(std::max(kEnvs / workers, 1));
  options.total_steps = given.total_steps.value_or(default_total_steps(options.env));
  PpoSettings& settings = options.settings;
  settings = settings_for(options.env);
  each_setting(
      [](const char* /*name*/, auto& setting, const auto& value) {
        if (value) setting = *value;
      },
      settings, given);
}

// Checks the combination of options.
void check_workers(const PpoOptions& options) {
  if (options.workers == 0) {
    const auto refuse = [](const std::string& what) {
      throw UsageError(what + " needs workers: give --workers 1 or more");
    };
    if (options.inference == InferencePlace::worker) refuse("--inference worker");
    if (options.buffers != 1) refuse("--buffers " + std::to_string(options.buffers));
    if (options.rank) refuse("--rank");
    if (!options.join.empty()) refuse("--join");
    if (options.env_threads != 1) refuse("--env-threads");
  }
  if (options.rank && *options.rank > options.workers) {
    throw UsageError("--rank " + std::to_string(*options.rank) + " of " +
                     std::to_string(options.workers) +
                     " --workers does not exist: 0 is the agent, the workers are 1 to " +
                     std::to_string(options.workers));
  }
  if (options.rank && options.join.empty()) {
    throw UsageError("--rank needs --join, the agent's address, such as tcp://10.0.0.1:29500");
  }
  if (options.policy == PolicyKind::compiled && options.policy_path.empty()) {
    throw UsageError(
        "--policy compiled needs --policy-path, a folder of packages made by "
        "scripts/export_policy.py (docs/compiled-policies.md)");
  }
  if (options.policy == PolicyKind::eager && !options.policy_path.empty()) {
    throw UsageError(
        "--policy-path does not apply to an eager policy: give --policy script or compiled");
  }
}

void check_sizes(const PpoOptions& options) {
  if (options.inference == InferencePlace::agent && options.envs() > kMostEnvs) {
    throw UsageError("--envs-per-worker " + std::to_string(options.envs_per_worker) + " of " +
                     std::to_string(options.workers) + " --workers are " +
                     std::to_string(options.envs()) +
                     " environments, but the agent can choose actions for " +
                     std::to_string(kMostEnvs) + " at most; use fewer, or --inference worker");
  }
  if (options.envs_per_worker % options.buffers != 0) {
    throw UsageError("--envs-per-worker " + std::to_string(options.envs_per_worker) +
                     " cannot be split into " + std::to_string(options.buffers) +
                     " buffers of equal size: give an even number, or --buffers 1");
  }
  if (options.group_envs() % options.env_threads != 0) {
    throw UsageError(
        "--env-threads " + std::to_string(options.env_threads) + ": the " +
        std::to_string(options.group_envs()) +
        " environments that a worker steps at a time cannot be split evenly among them");
  }
  const std::int64_t rows = options.rows_per_update();
  const std::int64_t minibatches = options.settings.minibatches;
  if (rows % minibatches != 0) {
    std::int64_t fitting = std::min(minibatches, rows);
    while (rows % fitting != 0)
      --fitting;
    throw UsageError(std::to_string(options.envs()) + " environments × " +
                     std::to_string(options.settings.steps) + " steps are " + std::to_string(rows) +
                     " rows per update, which cannot be split into " + std::to_string(minibatches) +
                     " minibatches of equal size: give --minibatches " + std::to_string(fitting) +
                     ", or change the number of environments or --steps");
  }
  if (options.total_steps < rows) {
    throw UsageError("--total-steps " + std::to_string(options.total_steps) + " is less than the " +
                     std::to_string(rows) +
                     " steps of one update: give more, or fewer environments or --steps");
  }
}

void check_files(const PpoOptions& options) {
  if (!options.figure.empty() && !options.figure.ends_with(".svg")) {
    throw UsageError("--figure " + options.figure +
                     ": give a file name that ends in .svg; a .png is written next to it");
  }
  if (!options.policy_path.empty() && !std::filesystem::exists(options.policy_path)) {
    throw UsageError("--policy-path " + options.policy_path + ": no such file or folder");
  }
  if (options.checkpoint.ends_with(".checkpoint")) {
    throw UsageError("--checkpoint " + options.checkpoint +
                     ": give the folder; the training continues from its newest checkpoint");
  }
  if (!options.json.empty()) check_writable("--json", options.json);
  if (!options.figure.empty()) check_writable("--figure", options.figure);
  if (!options.weights.empty()) check_writable("--weights", options.weights);
}

std::string env_words() {
  std::string words;
  for (const std::string& name : env_names())
    words += (words.empty() ? "" : "|") + name;
  return words;
}

}  // namespace

std::string training_settings(const PpoOptions& options) {
  std::ostringstream text;
  text << "env " << options.env << ", " << options.envs() << " environments, "
       << "total steps " << options.total_steps << ", seed " << options.seed << ", "
       << to_string(options.settings);
  return text.str();
}

std::optional<PpoOptions> parse_options(int argc, const char* const* argv) {
  const auto parser = make_parser(
      "Trains a policy by proximal policy optimization (PPO) in vectorised environments.");
  CLI::App& app = *parser;
  PpoOptions options;
  options.workers = kWorkers;
  Given given;
  app.add_option("--env", options.env, "environment: " + env_words())->capture_default_str();
  app.add_option("--workers", options.workers,
                 "processes that step environments; 0: this process does")
      ->check(between(0, kMostWorkers))
      ->capture_default_str();
  app.add_option("--envs-per-worker", given.envs_per_worker,
                 "environments of each worker (default: 64 in total)")
      ->check(between(1, kMostEnvs));
  app.add_option("--inference", options.inference, "where actions are chosen")
      ->transform(one_of(kInferencePlaces))
      ->default_str("agent");
  app.add_option("--policy", options.policy, "how the network that chooses actions runs")
      ->transform(one_of(kPolicyKinds))
      ->default_str("eager");
  app.add_option("--policy-path", options.policy_path,
                 "file or folder made by scripts/export_policy.py, for script and compiled");
  app.add_option("--env-threads", options.env_threads,
                 "threads of a worker that step its environments")
      ->check(between(1, 1024))
      ->capture_default_str();
  app.add_option("--torch-threads", options.torch_threads,
                 "threads of LibTorch in this process, which learns; the number affects rounding")
      ->check(between(1, 1024))
      ->capture_default_str();
  app.add_option("--step-timeout", options.step_timeout,
                 "seconds to wait for a worker's answer; a slower worker counts as lost")
      ->check(between(0.001, 1e6))
      ->capture_default_str();
  app.add_option(
         "--rank", options.rank,
         "run only the agent (0) or one worker (1 to --workers) of a training; start the other "
         "processes by hand with the same options; without --rank all are started here")
      ->check(between(0, kMostWorkers));
  app.add_option("--join", options.join, "the agent's address, such as tcp://10.0.0.1:29500");
  app.add_option("--buffers", options.buffers,
                 "groups of a worker's environments, which are stepped in turn")
      ->check(between(1, 2))
      ->capture_default_str();
  app.add_option("--total-steps", given.total_steps,
                 "steps of all environments together, rounded down to whole updates (default: "
                 "150000 for cartpole, else 5000000)")
      ->check(between<std::int64_t>(1, kMostSteps));
  app.add_option("--until", options.until,
                 "end as soon as the mean return of the last 100 episodes reaches this; the exit "
                 "code is 1 if it never does")
      ->check(between(-1e9, 1e9));
  app.add_option("--seed", options.seed, "seed of everything random")
      ->check(between(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--checkpoint", options.checkpoint,
                 "folder for checkpoints; if it has checkpoints, the training continues from them");
  app.add_option("--checkpoint-every", options.checkpoint_every, "updates between two checkpoints")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--json", options.json, "write a report to this file");
  app.add_option("--figure", options.figure,
                 "write the learning curve to this .svg file and a .png");
  app.add_option(
      "--weights", options.weights,
      "write the network's weights to this file, for scripts/export_policy.py --weights");
  add_settings(app, given);
  const bool run = parse_command_line(app, argc, argv, [&] {
    complete(options, given);
    check_workers(options);
    check_sizes(options);
    check_files(options);
  });
  return run ? std::optional(options) : std::nullopt;
}

}  // namespace batchrpc_examples::ppo
