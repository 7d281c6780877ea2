// Samplers whose environments are stepped by workers, in virtual time.
#include <torch/torch.h>
#include <torch/version.h>

#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "games/games.hpp"
#include "ppo/broken_env.hpp"
#include "ppo/learner.hpp"
#include "ppo/local_sampler.hpp"
#include "ppo/policies.hpp"
#include "ppo/remote_sampler.hpp"
#include "ppo/rollout_sampler.hpp"
#include "ppo/training.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples::ppo {
namespace workers_test {

namespace rpc = batchrpc;
using namespace std::chrono_literals;

// Observes {step, episode}, the reward is the action; episodes of 3 steps end by turns truncated
// and terminated. The same for each seed.
class Turns final : public rpc::Env {
 public:
  Turns() {
    spec_.observation = {rpc::ElementType::float32, {2}};
    spec_.actions = 100;
  }
  [[nodiscard]] const rpc::EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> /*seed*/, std::span<std::byte> observation) override {
    ++episode_;
    step_ = 0;
    observe(observation);
  }
  [[nodiscard]] rpc::EnvStep step(std::span<const std::byte> action,
                                  std::span<std::byte> observation) override {
    ++step_;
    observe(observation);
    const bool ended = step_ == 3;
    return {.reward = static_cast<float>(rpc::elements_of<std::int64_t>(action)[0]),
            .terminated = ended && episode_ % 2 == 0,
            .truncated = ended && episode_ % 2 == 1};
  }

 private:
  void observe(std::span<std::byte> observation) const {
    const auto numbers = rpc::elements_of<float>(observation);
    numbers[0] = static_cast<float>(step_);
    numbers[1] = static_cast<float>(episode_);
  }
  rpc::EnvSpec spec_;
  int step_ = 0;
  int episode_ = 0;
};
std::unique_ptr<rpc::Env> make_turns() { return std::make_unique<Turns>(); }

// By what is observed alone.
Decisions decide(const at::Tensor& observations) {
  const at::Tensor step = observations.select(1, 0);
  const at::Tensor episode = observations.select(1, 1);
  return {(step * 10 + episode.remainder(10)).to(at::kLong), step / -4, episode * 2, 5};
}

RolloutSampler::Weights weights() { return {at::zeros({1}), 5}; }

class DecidingPolicy final : public rpc::WorkerPolicy {
 public:
  [[nodiscard]] std::size_t extras() const noexcept override { return 2; }
  std::uint64_t act(std::size_t /*buffer*/, std::size_t rows,
                    std::span<const std::byte> observations, std::span<std::byte> actions,
                    std::span<float> extras) override {
    const at::Tensor seen = at::from_blob(const_cast<std::byte*>(observations.data()),
                                          {static_cast<std::int64_t>(rows), 2});
    const Decisions decisions = decide(seen);
    const auto out = rpc::elements_of<std::int64_t>(actions);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = static_cast<std::int64_t>(i);
      out[i] = decisions.actions[row].item<std::int64_t>();
      extras[2 * i] = decisions.log_probs[row].item<float>();
      extras[2 * i + 1] = decisions.values[row].item<float>();
    }
    return version_;
  }
  void update(rpc::Bytes /*weights*/, std::uint64_t version) override { version_ = version; }

 private:
  std::uint64_t version_ = 0;
};

// A driver, and workers "w0", "w1", … whose steps take 1 ms, or as `step_times` says.
struct World {
  explicit World(std::size_t workers, rpc::EnvFactory factory = &make_turns,
                 std::function<std::shared_ptr<rpc::WorkerPolicy>()> policy = nullptr)
      : make(std::move(factory)), make_policy(std::move(policy)) {
    world.network().set_link({.latency = 100us});
    driver = std::make_unique<rpc::Node>(world.options("driver"));
    for (std::size_t w = 0; w < workers; ++w) {
      names.push_back("w" + std::to_string(w));
      start(w);
    }
  }
  void start(std::size_t w) {
    hosts.erase(w);
    hosts.emplace(w, std::make_unique<Host>(*this, names[w]));
  }
  [[nodiscard]] rpc::Duration time_of(const std::string& name) const {
    const auto found = step_times.find(name);
    return found == step_times.end() ? rpc::Duration(1ms) : found->second;
  }
  std::unique_ptr<rpc::VectorEnv> open(std::size_t envs, std::size_t buffers = 1) {
    return std::make_unique<rpc::VectorEnv>(
        *driver, rpc::VectorEnvOptions{.workers = names,
                                       .envs_per_worker = envs,
                                       .buffers = buffers,
                                       .autoreset = rpc::Autoreset::same_step});
  }

  struct Host {
    Host(World& of, const std::string& name)
        : node(of.world.options(name)),
          worker(node, rpc::group_of(of.make),
                 {.lanes = rpc::timed_lanes(
                      1, of.world.loop(),
                      [time = of.time_of(name)](std::size_t /*lane*/) { return time; }),
                  .policy = of.make_policy ? of.make_policy() : nullptr}) {}
    rpc::Node node;
    rpc::EnvWorker worker;
  };
  rpc::SimulatedWorld world;
  rpc::EnvFactory make;
  std::function<std::shared_ptr<rpc::WorkerPolicy>()> make_policy;
  std::map<std::string, rpc::Duration> step_times;
  std::vector<std::string> names;
  std::unique_ptr<rpc::Node> driver;
  std::map<std::size_t, std::unique_ptr<Host>> hosts;
};

// Two workers that decide, of which w0 takes 50 ms a step.
struct SlowWorld : World {
  SlowWorld() : World(2, &make_turns, [] { return std::make_shared<DecidingPolicy>(); }) {
    step_times["w0"] = 50ms;
    start(0);
  }
};

void check_same(const Sample& a, const Sample& b) {
  CHECK(at::equal(a.observations, b.observations));
  CHECK(at::equal(a.actions, b.actions));
  CHECK(at::equal(a.log_probs, b.log_probs));
  CHECK(at::equal(a.values, b.values));
  CHECK(at::equal(a.rewards, b.rewards));
  CHECK(at::equal(a.terminated, b.terminated));
  CHECK(at::equal(a.truncated, b.truncated));
  CHECK(at::equal(a.valid, b.valid));
  CHECK(at::equal(a.versions, b.versions));
  CHECK(at::equal(a.next_observations, b.next_observations));
  CHECK(at::equal(a.final_observations, b.final_observations));
  CHECK(at::equal(a.final_rows, b.final_rows));
  CHECK(a.begun_anew == b.begun_anew);
}

TEST_CASE("Workers' samples are those of environments in this process, wherever the policy is") {
  const std::size_t buffers = GENERATE(std::size_t{1}, std::size_t{2});
  const bool at_workers = GENERATE(false, true);
  CAPTURE(buffers, at_workers);
  World world(2, &make_turns, [] { return std::make_shared<DecidingPolicy>(); });
  const auto envs = world.open(2, buffers);
  std::unique_ptr<Sampler> sampler;
  if (at_workers) {
    sampler = std::make_unique<RolloutSampler>(*envs, &weights, 1);
  } else {
    sampler = std::make_unique<RemoteSampler>(*envs, &decide, GENERATE(false, true), 1);
  }
  LocalSampler local(&make_turns, 2, 1, &decide);
  for (const std::int64_t steps : {2, 8}) {  // in the first two no episode ends
    const std::vector<Sample> samples = sampler->sample(steps);
    REQUIRE(samples.size() == 2 * buffers);
    const Sample expected = local.sample(steps).at(0);
    CHECK((expected.final_rows.numel() > 0) == (steps == 8));
    for (const Sample& sample : samples)
      check_same(sample, expected);
  }
}

std::unique_ptr<Sampler> sampler_of(rpc::VectorEnv& envs, bool at_workers) {
  if (at_workers) return std::make_unique<RolloutSampler>(envs, &weights, 1);
  return std::make_unique<RemoteSampler>(envs, &decide, true, 1);
}

TEST_CASE("What a worker that is lost would have sampled is not valid, and it comes back") {
  const bool at_workers = GENERATE(false, true);
  CAPTURE(at_workers);
  World world(2, &make_turns, [] { return std::make_shared<DecidingPolicy>(); });
  const auto envs = world.open(2);
  const auto sampler = sampler_of(*envs, at_workers);
  world.world.after(4500us, [&] { world.world.kill("w1"); });
  std::vector<Sample> samples = sampler->sample(10);
  CHECK(samples.at(0).valid.all().item<bool>());
  CHECK_FALSE(samples.at(1).valid.all().item<bool>());
  const std::int64_t valid = samples.at(1).valid.sum().item<std::int64_t>();
  CHECK(valid == (at_workers ? 0 : 6));  // three steps of two had been answered
  if (!at_workers) {
    // What the last valid row led to is known.
    CHECK(samples.at(1).observations[3][0][0].item<float>() == 0);
    CHECK(samples.at(1).observations[3][0][1].item<float>() == 2);
  }
  samples = sampler->sample(10);
  CHECK(samples.at(1).valid.sum().item<std::int64_t>() == 0);
  world.start(1);
  for (int i = 0; i < 500 && samples.at(1).valid.sum().item<std::int64_t>() == 0; ++i)
    samples = sampler->sample(10);
  CHECK(samples.at(1).valid.all().item<bool>());
  CHECK(samples.at(1).observations[0][0][0].item<float>() == 0);  // a first observation

  world.world.kill("w0");
  world.world.kill("w1");
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 3; ++i)
          (void)sampler->sample(10);
      }(),
      rpc::PeerLost);
}

TEST_CASE("A sampler without its only worker says so, and samples from it when it is back") {
  const int how = GENERATE(0, 1, 2);  // policy at the worker; here, by step_wait() and by recv()
  CAPTURE(how);
  World world(1, &make_turns, [] { return std::make_shared<DecidingPolicy>(); });
  const auto envs = world.open(2);
  std::unique_ptr<Sampler> sampler;
  if (how == 0) {
    sampler = std::make_unique<RolloutSampler>(*envs, &weights, 1);
  } else {
    sampler = std::make_unique<RemoteSampler>(*envs, &decide, how == 2, 1);
  }
  world.world.kill("w0");
  CHECK_THROWS_AS(sampler->sample(2), rpc::PeerLost);
  CHECK_THROWS_AS(sampler->sample(2), rpc::PeerLost);
  world.start(0);
  REQUIRE(envs->wait_for_workers(1, 10s));
  (void)sampler->sample(2);  // in which its first observations come
  const Sample next = sampler->sample(2).at(0);
  CHECK(next.begun_anew);
  CHECK(next.valid.all().item<bool>());
}

TEST_CASE("A worker that is replaced when it has sampled leaves its sample as it was") {
  const bool at_workers = GENERATE(false, true);
  CAPTURE(at_workers);
  SlowWorld world;
  const auto envs = world.open(2);
  const auto sampler = sampler_of(*envs, at_workers);
  LocalSampler local(&make_turns, 2, 1, &decide);
  world.world.after(100ms, [&] { world.world.kill("w1"); });
  world.world.after(110ms, [&] { world.start(1); });
  const std::vector<Sample> samples = sampler->sample(8);  // w0 takes 400 ms
  check_same(samples.at(1), local.sample(8).at(0));
  const Sample next = sampler->sample(2).at(1);
  CHECK(next.begun_anew);
  CHECK(next.valid.all().item<bool>());
  CHECK(next.observations[0][0][0].item<float>() == 0);
}

TEST_CASE("A worker that is back when the other's sample comes is in the next sample") {
  const bool at_workers = GENERATE(false, true);
  CAPTURE(at_workers);
  SlowWorld world;
  const auto envs = world.open(2);
  const auto sampler = sampler_of(*envs, at_workers);
  world.world.after(100ms, [&] {
    world.world.kill("w1");
    world.start(1);
    world.world.run_for(700ms);  // w1's first observations and w0's sample come before any is taken
  });
  (void)sampler->sample(8);
  const Sample next = sampler->sample(2).at(1);
  CHECK(next.begun_anew);
  CHECK(next.valid.all().item<bool>());
  CHECK(next.observations[0][0][0].item<float>() == 0);
}

TEST_CASE("Samples are there, and not valid, of a worker that is lost before it has begun") {
  const bool at_workers = GENERATE(false, true);
  CAPTURE(at_workers);
  SlowWorld world;
  const auto envs = world.open(2);
  world.world.after(20ms, [&] { world.world.kill("w0"); });  // it resets
  const auto sampler = sampler_of(*envs, at_workers);
  const std::vector<Sample> samples = sampler->sample(3);
  CHECK(samples.at(1).valid.all().item<bool>());
  CHECK_FALSE(samples.at(0).valid.any().item<bool>());
  CHECK(samples.at(0).observations.sizes() == samples.at(1).observations.sizes());
}

PpoOptions short_options() {
  PpoOptions options;
  options.workers = 2;
  options.envs_per_worker = 2;
  options.total_steps = 320;
  options.settings = {.steps = 8, .epochs = 2, .minibatches = 2, .learning_rate = 1e-2};
  return options;
}

// Workers with these environments, and a policy where the options want one there.
struct TrainingWorld : World {
  TrainingWorld(const PpoOptions& options, const rpc::EnvFactory& envs)
      : World(static_cast<std::size_t>(options.workers), envs,
              [=]() -> std::shared_ptr<rpc::WorkerPolicy> {
                if (options.inference == InferencePlace::agent) return nullptr;
                return make_network_policy(options, envs()->spec(), 77);
              }) {}
};

std::uint64_t hash_after_training(const PpoOptions& options) {
  use_one_torch_thread();
  TrainingWorld world(options, [] { return make_env("cartpole"); });
  const auto envs = world.open(static_cast<std::size_t>(options.group_envs()),
                               static_cast<std::size_t>(options.buffers));
  Training training(options, *envs);
  std::int64_t rows = 0;
  while (!training.finished()) {
    const CurvePoint& point = training.update();
    CHECK(point.update.version_lag == 0);
    rows += point.update.rows;
  }
  CHECK(rows == 320);
  return training.weights_hash();
}

TEST_CASE("A NaN of a worker's environment stops the training, wherever the policy is") {
  PpoOptions options = short_options();
  options.inference = GENERATE(InferencePlace::agent, InferencePlace::worker);
  TrainingWorld world(options, [] { return std::make_unique<BrokenEnv>(); });
  const auto envs = world.open(2);
  Training training(options, *envs);
  CHECK_NOTHROW(training.update());
  const std::uint64_t hash = training.weights_hash();
  CHECK_NOTHROW(training.update());
  CHECK(training.weights_hash() != hash);
  const std::uint64_t before = training.weights_hash();
  CHECK_THROWS_AS(training.update(), NotFinite);
  CHECK(training.weights_hash() == before);
}

TEST_CASE("A training by workers repeats bit for bit, wherever and however the policy runs") {
  PpoOptions options = short_options();
  options.inference = GENERATE(InferencePlace::agent, InferencePlace::worker);
  options.policy = GENERATE(PolicyKind::eager, PolicyKind::script);
  options.buffers = GENERATE(1, 2);
  const std::uint64_t hash = hash_after_training(options);
  CHECK(hash == hash_after_training(options));
  options.seed = 2;
  CHECK(hash != hash_after_training(options));
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
TEST_CASE("A training by a compiled policy repeats bit for bit, wherever the policy runs") {
  PpoOptions options = short_options();
  options.policy_path = std::string(BATCHRPC_POLICIES) + "/two-mlps/updatable";
  if (!std::filesystem::exists(options.policy_path)) {
    WARN("left out: a Python with PyTorch " TORCH_VERSION ", which exports policies");
    return;
  }
  options.policy = PolicyKind::compiled;
  options.inference = GENERATE(InferencePlace::agent, InferencePlace::worker);
  CHECK(hash_after_training(options) == hash_after_training(options));
}
#endif

}  // namespace workers_test
}  // namespace batchrpc_examples::ppo
