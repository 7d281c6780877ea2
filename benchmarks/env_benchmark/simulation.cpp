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

std::vector<double> simulate(const Setting& setting, const Link& link, const Variant& variant,
                             const Costs& costs) {
  rpc::SimulatedWorld world;
  world.network().set_link(
      {.latency = of(link.latency_us), .bandwidth = link.bytes_per_second, .capacity = 1 << 20});
  const rpc::Node driver(world.options("driver"));
  struct Machine {
    explicit Machine(rpc::NodeOptions options) : node(std::move(options)) {}
    rpc::Node node;
    std::unique_ptr<rpc::EnvWorker> worker;
  };
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::string> names;
  std::exponential_distribution<double> late(1 / std::max(costs.step_us, 1e-3));
  const auto draw = [&](std::size_t /*lane*/) {
    return of(setting.step_ms * 1e3 + late(world.random()));
  };
  for (std::size_t w = 0; w < setting.workers; ++w) {
    names.push_back(worker_name(w));
    machines.push_back(std::make_unique<Machine>(world.options(names.back())));
    machines.back()->worker = std::make_unique<rpc::EnvWorker>(
        machines.back()->node,
        [&](std::size_t size) {
          return std::make_unique<TimedGroup>(size, setting.observation_bytes, StepTime{});
        },
        rpc::EnvWorkerOptions{.lanes = rpc::timed_lanes(setting.lanes, world.loop(), draw),
                              .max_envs = kMostEnvs});
  }

  rpc::VectorEnv envs(
      driver,
      {.workers = names, .envs_per_worker = setting.envs_per_worker, .buffers = variant.buffers});
  const std::vector<std::int64_t> actions(envs.size(), 1);
  const rpc::Duration message =
      of(costs.message_us + costs.byte_ns / 1e3 * static_cast<double>(setting.message_bytes()));
  const auto next = [&] {
    rpc::EnvBatch batch = variant.mode == Mode::sync ? envs.step_wait() : envs.recv();
    world.run_for(message * static_cast<std::int64_t>(batch.groups));
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
  const rpc::Duration step = of(setting.step_ms * 1e3 + costs.step_us);
  run_for(100 * step);
  std::vector<double> windows;
  for (int i = 0; i < 3; ++i)
    windows.push_back(run_for(1000 * step));
  return windows;
}

}  // namespace env_benchmark
