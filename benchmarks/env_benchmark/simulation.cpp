#include "env_benchmark/simulation.hpp"

#include <algorithm>
#include <batchrpc/env.hpp>
#include <batchrpc/testing.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "env_benchmark/timed_group.hpp"
#include "env_benchmark/worker.hpp"

namespace env_benchmark {

namespace rpc = batchrpc;

namespace {

rpc::Duration of(double microseconds) {
  return std::chrono::duration_cast<rpc::Duration>(
      std::chrono::duration<double, std::micro>(microseconds));
}

}  // namespace

double simulate(const SimulatedWorkers& workers, const Variant& variant, const Costs& costs) {
  rpc::SimulatedWorld world;
  world.network().set_link(
      {.latency = of(workers.latency_us), .bandwidth = 1'250'000'000, .capacity = 1 << 20});
  const rpc::Node driver(world.options("driver"));
  struct Machine {
    explicit Machine(rpc::NodeOptions options) : node(std::move(options)) {}
    rpc::Node node;
    std::unique_ptr<rpc::EnvWorker> worker;
  };
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::string> names;
  const rpc::Duration step = of(workers.step_ms * 1e3 + costs.step_us);
  std::exponential_distribution<double> late(1 / std::max(costs.step_us, 1e-3));
  const auto draw = [&](std::size_t /*lane*/) {
    return of(workers.step_ms * 1e3 + late(world.random()));
  };
  for (std::size_t w = 0; w < workers.workers; ++w) {
    names.push_back(worker_name(w));
    machines.push_back(std::make_unique<Machine>(world.options(names.back())));
    machines.back()->worker = std::make_unique<rpc::EnvWorker>(
        machines.back()->node,
        [](std::size_t size) { return std::make_unique<TimedGroup>(size, StepTime{}); },
        rpc::EnvWorkerOptions{.lanes = rpc::timed_lanes(workers.lanes, world.loop(), draw)});
  }

  rpc::VectorEnv envs(
      driver,
      {.workers = names, .envs_per_worker = workers.envs_per_worker, .buffers = variant.buffers});
  const std::vector<std::int64_t> actions(envs.size(), 1);
  const auto next = [&] {
    rpc::EnvBatch batch = variant.mode == Mode::sync ? envs.step_wait() : envs.recv();
    world.run_for(of(costs.message_us * static_cast<double>(batch.groups)));
    return batch;
  };
  envs.reset_async();
  rpc::EnvBatch batch = next();
  const auto run_for = [&](rpc::Duration time) {
    const rpc::Duration begin = world.time();
    std::size_t rows = 0;
    while (world.time() - begin < time) {
      envs.step_async(batch, std::as_bytes(std::span(actions).first(batch.groups * batch.envs)));
      batch = next();
      rows += batch.rows();
    }
    return static_cast<double>(rows) / std::chrono::duration<double>(world.time() - begin).count();
  };
  run_for(5 * step);
  return run_for(100 * step);
}

}  // namespace env_benchmark
