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
  int exit_code = 0;     ///< exit code of its process; 0: the agent has finished
  std::string reason{};  ///< a text for the user; may be empty
};

/// An observer: plays CartPole and asks the agent for every action. The agent calls its public
/// functions, except `end()` and `ended()`.
class Observer {
 public:
  /// `index` counts from 0. The node must outlive the observer.
  Observer(const batchrpc::Node& node, int index, std::uint64_t seed, double discount);

  /// Does nothing. A successful call shows that this observer is ready.
  void ready();

  /// Plays for a number of steps; when the environment ends, it is reset. No thread waits during
  /// the episode. Only one episode may run at a time.
  batchrpc::Future<Rollout> run_episode(std::int32_t steps);

  /// The agent has finished.
  void finish();

  /// Ends the work for another reason. Any thread may call it. Only the first call counts.
  void end(ObserverEnd why);

  /// Returns a future that is ready when the work is over. Call it once.
  batchrpc::Future<ObserverEnd> ended();

 private:
  const batchrpc::Node& node_;
  const std::int32_t index_;
  const double discount_;
  CartPoleEnv environment_;

  std::mutex mutex_;  // guards the members below
  batchrpc::Promise<ObserverEnd> end_;
};

}  // namespace batchrpc_examples
