#include "env_benchmark/worker.hpp"

#include <algorithm>
#include <batchrpc/env.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace env_benchmark {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;

rpc::NodeOptions node_options(const Setting& setting, const std::string& meeting_place, int rank) {
  return {.name = rank == 0 ? kDriver : worker_name(static_cast<std::size_t>(rank) - 1),
          .rank = rank,
          .world_size = static_cast<int>(setting.workers) + 1,
          .join = meeting_place};
}

double run_free(const Setting& setting, StepTime time, double seconds) {
  std::vector<double> rates(setting.lanes);
  std::vector<std::thread> threads;
  for (double& rate : rates) {
    threads.emplace_back([&] {
      TimedGroup group(setting.group_envs(), setting.observation_bytes, time);
      const rpc::Bytes observations =
          rpc::Bytes::allocate(group.size() * setting.observation_bytes);
      std::vector<float> rewards(group.size());
      std::vector<std::uint8_t> flags(group.size());
      const rpc::StepRows rows{
          {observations.mutable_data(), observations.size()}, rewards, flags, flags};
      const auto begin = Clock::now();
      std::chrono::duration<double> passed{};
      std::size_t steps = 0;
      while (passed.count() < seconds) {
        group.step({}, flags, rows);
        steps += group.size();
        passed = Clock::now() - begin;
      }
      rate = static_cast<double>(steps) / passed.count();
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  double all = 0;
  for (const double rate : rates)
    all += rate;
  return all;
}

void run_worker(const Setting& setting, StepTime time, const std::string& meeting_place,
                std::size_t worker) {
  rpc::Node node(node_options(setting, meeting_place, static_cast<int>(worker) + 1));
  node.expose(kFree, [setting, time](double seconds) { return run_free(setting, time, seconds); });
  const rpc::EnvWorker envs(node,
                            [&setting, time](std::size_t size) {
                              return std::make_unique<TimedGroup>(size, setting.observation_bytes,
                                                                  time);
                            },
                            {.lanes = rpc::thread_lanes(setting.lanes), .max_envs = kMostEnvs});
  node.shutdown_together();
}

}  // namespace env_benchmark
