#include "env_benchmark/world.hpp"

#include <algorithm>
#include <batchrpc/env.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>

#include "common/cpu_time.hpp"
#include "common/meeting_place.hpp"
#include "env_benchmark/worker.hpp"

namespace env_benchmark {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;

namespace {
constexpr double kWarmUp = 0.3;  // seconds

std::vector<std::string> names_of(const Setting& setting) {
  std::vector<std::string> names;
  for (std::size_t w = 0; w < setting.workers; ++w)
    names.push_back(worker_name(w));
  return names;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

World::World(const Setting& setting, StepTime time) : setting_(setting) {
  const std::string meeting_place =
      batchrpc_examples::new_meeting_place("env_benchmark", setting.transport);
  for (std::size_t w = 0; w < setting.workers; ++w) {
    children_.emplace_back([&setting, time, meeting_place, w] {
      std::signal(SIGINT,
                  SIG_IGN);  // a terminal sends it to all processes; the driver ends the run
      run_worker(setting, time, meeting_place, w);
      return 0;
    });
  }
  node_.emplace(node_options(setting, meeting_place, 0));
}

World::~World() {
  node_->shutdown_together(std::chrono::seconds(1));
  for (auto& child : children_)
    child.wait_for(std::chrono::seconds(2));
}

Measured World::drive(const Variant& variant, const batchrpc::InterruptFlag& interrupts) const {
  rpc::VectorEnv envs(*node_, {.workers = names_of(setting_),
                               .envs_per_worker = setting_.envs_per_worker,
                               .buffers = variant.buffers});
  const std::vector<std::int64_t> actions(envs.size(), 1);
  const auto next = [&] { return variant.mode == Mode::sync ? envs.step_wait() : envs.recv(); };
  std::size_t rows = 0;
  std::size_t groups = 0;
  envs.reset_async();
  rpc::EnvBatch batch = next();
  const auto run_for = [&](double seconds) {
    rows = 0;
    groups = 0;
    const auto begin = Clock::now();
    double passed = 0;
    while (passed < seconds) {
      envs.step_async(batch, std::as_bytes(std::span(actions).first(batch.groups * batch.envs)));
      batch = next();
      rows += batch.rows();
      groups += batch.groups;
      passed = seconds_since(begin);
      interrupts.check();
    }
    return passed;
  };
  run_for(kWarmUp);
  const batchrpc_benchmarks::CpuWatch cpu(std::nullopt);
  const double seconds = run_for(setting_.seconds);
  const double driver_cpu = cpu.passed().client;
  for (const auto& worker : envs.workers()) {
    if (worker.losses > 0) throw std::runtime_error(worker.last_loss);
  }
  return {.steps_per_second = static_cast<double>(rows) / seconds,
          .messages_per_second = static_cast<double>(groups) / seconds,
          .driver_cpus = driver_cpu / seconds};
}

double World::run_free() const {
  double all = 0;
  for (rpc::Future<double>& rate :
       node_->each(names_of(setting_)).call<double(double)>(kFree, setting_.seconds))
    all += std::move(rate).get();
  return all;
}

}  // namespace env_benchmark
