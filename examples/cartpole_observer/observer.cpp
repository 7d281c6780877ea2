#include "cartpole_observer/observer.hpp"

#include <utility>

#include "cartpole_observer/group_options.hpp"
#include "cartpole_observer/state_row.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;

Observer::Observer(const rpc::Node& node, int index, std::uint64_t seed, double discount)
    : node_(node), index_(index), discount_(discount), environment_(seed) {}

void Observer::ready() {}

rpc::Future<Rollout> Observer::run_episode(std::int32_t steps) {
  StateRow row{.observer = index_, .state = environment_.reset()};
  RolloutRecorder recorder(index_, discount_);
  for (int step = 0; step < steps; ++step) {
    const int action =
        co_await node_.call<std::int32_t(StateRow)>(kAgentName, "select_action", row);
    const CartPoleEnv::Step result = environment_.step(action);
    recorder.add(result.reward, result.ended());
    row.state = result.ended() ? environment_.reset() : environment_.observation();
  }
  co_return recorder.finish();
}

void Observer::finish() { end({}); }

void Observer::end(ObserverEnd why) {
  rpc::Promise<ObserverEnd> promise;
  {
    const std::lock_guard lock(mutex_);
    if (!end_.pending()) return;
    promise = std::move(end_);
  }
  promise.set_value(std::move(why));
}

rpc::Future<ObserverEnd> Observer::ended() {
  const std::lock_guard lock(mutex_);
  return end_.get_future();
}

}  // namespace batchrpc_examples
