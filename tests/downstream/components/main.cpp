// Environments that are stepped in a simulated world, and profiled: something of each component
// that needs no other library.

#include <batchrpc/env.hpp>
#include <batchrpc/profile.hpp>
#include <batchrpc/testing.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rpc = batchrpc;
using namespace std::chrono_literals;

// Each step gives as much as its action says.
class Echo final : public rpc::Env {
 public:
  const rpc::EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> /*seed*/, std::span<std::byte> observation) override {
    rpc::elements_of<float>(observation)[0] = 0;
  }
  rpc::EnvStep step(std::span<const std::byte> action, std::span<std::byte> observation) override {
    const auto chosen = static_cast<float>(rpc::elements_of<std::int64_t>(action)[0]);
    rpc::elements_of<float>(observation)[0] = chosen;
    return {.reward = chosen};
  }

 private:
  rpc::EnvSpec spec_{.observation = {rpc::ElementType::float32, {1}},
                     .action = {rpc::ElementType::int64, {}},
                     .actions = 3};
};

// The sum of the rewards of one step of four environments.
float drive(const rpc::Node& node) {
  rpc::VectorEnv envs(node, {.workers = {"worker"}, .envs_per_worker = 4});
  const rpc::EnvBatch first = envs.reset();
  const std::vector<std::int64_t> actions(first.rows(), 2);
  envs.step_async(first, std::as_bytes(std::span(actions)));
  float sum = 0;
  for (const float reward : envs.step_wait().rewards)
    sum += reward;
  return sum;
}

int main() {
  rpc::SimulatedWorld world(1);  // its seed
  float sum = 0;
  std::size_t calls = 0;
  std::vector<std::string> missing;
  world.spawn("driver", [&] {
    const rpc::Node node(world.options("driver"));
    rpc::Profiler profiler(node);
    sum = drive(node);
    missing = profiler.gather();  // from the worker, which has no profiler
    calls = profiler.recording().calls.size();
    std::cout << profiler.key_averages().table();
  });
  world.spawn("worker", [&] {
    const rpc::Node node(world.options("worker", {.rank = -1}));
    const rpc::EnvWorker worker(
        node, rpc::group_of([] { return std::make_unique<Echo>(); }),
        {.lanes = rpc::timed_lanes(1, world.loop(), [](std::size_t /*lane*/) { return 1ms; })});
    world.run_for(1min);
  });
  world.run();
  std::cout << "rewards: " << sum << ", calls: " << calls << '\n';
  return sum == 8 && calls > 0 && missing.empty() ? 0 : 1;
}
