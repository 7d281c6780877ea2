#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <batchrpc/env.hpp>
#include <batchrpc/testing.hpp>

#include "env/counting_env.hpp"

namespace batchrpc::test {

/// A driver and workers "w0", "w1", … in virtual time, with links of 100 us. Worker w's lanes take
/// `times[w]` a step, 1 ms if there is none.
class EnvWorld {
 public:
  struct Host {
    Host(EnvWorld& of, std::size_t w) : node(of.world.options(of.names[w])) { serve(of, w); }
    /// Has an EnvWorker, in the place of one that has ended in good order.
    void serve(EnvWorld& of, std::size_t w) {
      worker = nullptr;
      const auto time = [&of, w](std::size_t /*lane*/) {
        const auto at = of.times.find(w);
        return at == of.times.end() ? Duration(std::chrono::milliseconds(1)) : at->second;
      };
      worker = std::make_unique<EnvWorker>(
          node, counting_envs(of.how_),
          EnvWorkerOptions{.lanes = timed_lanes(of.lanes_, of.world.loop(), time),
                           .policy = of.policy});
    }
    Node node;
    std::unique_ptr<EnvWorker> worker;
  };

  explicit EnvWorld(std::size_t workers, Counting how = {}, std::size_t lanes = 1,
                    std::shared_ptr<WorkerPolicy> of_workers = nullptr)
      : policy(std::move(of_workers)), how_(std::move(how)), lanes_(lanes) {
    world.network().set_link({.latency = std::chrono::microseconds(100)});
    driver = std::make_unique<Node>(world.options("driver"));
    for (std::size_t w = 0; w < workers; ++w) {
      names.push_back("w" + std::to_string(w));
      start(w);
    }
  }

  /// Begins, or begins again after a kill.
  void start(std::size_t w) {
    hosts.erase(w);
    hosts.emplace(w, std::make_unique<Host>(*this, w));
  }
  [[nodiscard]] VectorEnvOptions options(std::size_t envs_per_worker, std::size_t buffers = 1,
                                         Autoreset autoreset = Autoreset::next_step) const {
    return {.workers = names,
            .envs_per_worker = envs_per_worker,
            .buffers = buffers,
            .autoreset = autoreset,
            .seed = 100};
  }

  /// Of workers that begin from now on.
  void set(Counting how) { how_ = std::move(how); }

  SimulatedWorld world;
  std::vector<std::string> names;
  std::map<std::size_t, Duration> times;
  std::shared_ptr<WorkerPolicy> policy;  // of workers that begin from now on
  std::unique_ptr<Node> driver;
  std::map<std::size_t, std::unique_ptr<Host>> hosts;

 private:
  Counting how_;
  std::size_t lanes_;
};

/// The same action for every environment of a batch.
inline std::vector<std::int64_t> all(const EnvBatch& batch, std::int64_t action,
                                     std::size_t steps = 1) {
  return std::vector<std::int64_t>(batch.groups * steps * batch.envs, action);
}

}  // namespace batchrpc::test
