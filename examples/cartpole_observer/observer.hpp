#pragma once

#include <batchrpc/batchrpc.hpp>
#include <cstdint>
#include <mutex>
#include <string>

#include "cartpole_observer/cartpole_env.hpp"
#include "cartpole_observer/returns.hpp"

namespace batchrpc_examples {

/// How an observer's work ended.
struct ObserverEnd {
  int exit_code = 0;     ///< of its process; 0: the agent has said that it is through
  std::string reason{};  ///< for people; empty when there is nothing to say
};

/// Lives in an observer's process: plays CartPole, and asks the agent for every action. Its public
/// functions but `ended()` are what the agent calls.
class Observer {
 public:
  /// `index` counts from 0. The node outlives it.
  Observer(const batchrpc::Node& node, int index, std::uint64_t seed, double discount);

  /// Does nothing: that it can be called says that this observer is there.
  void ready();

  /// Plays for a number of steps: when the environment ends it is reset and goes on. No thread
  /// waits meanwhile. An episode at a time.
  batchrpc::Future<Rollout> run_episode(std::int32_t steps);

  /// The agent is through.
  void finish();

  /// Ends the work for another reason; any thread. Only the first counts.
  void end(ObserverEnd why);

  /// Ready when the work is over. Once.
  batchrpc::Future<ObserverEnd> ended();

 private:
  const batchrpc::Node& node_;
  const std::int32_t index_;
  const double discount_;
  CartPoleEnv environment_;

  std::mutex mutex_;  // guards what follows
  batchrpc::Promise<ObserverEnd> end_;
};

}  // namespace batchrpc_examples
