#include "cartpole/agent.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cartpole_observer/group_options.hpp"
#include "cartpole_observer/observer.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;
using namespace std::chrono_literals;

Agent::Agent(const rpc::Node& node, const AgentOptions& options,
             std::function<void(const std::string&)> notice,
             const batchrpc::InterruptFlag& interrupts)
    : node_(node),
      steps_(options.learning.steps),
      notice_(std::move(notice)),
      interrupts_(interrupts),
      learner_(std::make_shared<Learner>(options.learning)) {
  for (int rank = 1; rank <= options.learning.observers; ++rank)
    observers_.push_back(observer_name(rank));

  if (options.batch) {
    const rpc::Batcher<std::int32_t(StateRow)> select_action(
        {.max_size = observers_.size(), .short_handler = true}, &Learner::select_actions, learner_);
    node.expose("select_action", select_action);
  } else {
    node.expose(
        "select_action",
        [learner = learner_](const StateRow& row) { return learner->select_actions({row})[0]; },
        {.short_handler = true});
  }
  for (const std::string& observer : observers_)
    wait_until_ready(observer);
}

std::vector<Rollout> Agent::run_episode() {
  const std::vector<std::string> players = observers_;
  auto episodes = rpc::when_all_settled(node_.each(players).call<&Observer::run_episode>(steps_));
  do {
    interrupts_.check();
  } while (!episodes.wait_for(100ms));

  std::vector<Rollout> rollouts;
  auto results = std::move(episodes).get();
  for (std::size_t i = 0; i < players.size(); ++i) {
    if (results[i]) {
      rollouts.push_back(std::move(*results[i]));
    } else {
      drop_observer(players[i], results[i]);
    }
  }
  if (observers_.empty()) throw std::runtime_error("all observers are lost");
  return rollouts;
}

// An observer exposes its functions only once it has joined, which may be a moment after the agent.
void Agent::wait_until_ready(const std::string& observer) const {
  while (true) {
    try {
      return node_.call<&Observer::ready>(observer).get();
    } catch (const rpc::NotFound&) {
      interrupts_.check();
      std::this_thread::sleep_for(1ms);
    }
  }
}

void Agent::drop_observer(const std::string& observer, const rpc::Result<Rollout>& failure) {
  interrupts_.check();
  std::erase(observers_, observer);
  lost_.push_back(observer);
  notice_(failure.message() + "; the training continues with " + std::to_string(observers_.size()) +
          " others");
  const bool is_gone =
      failure.code() == rpc::ErrorCode::peer_lost || failure.code() == rpc::ErrorCode::not_sent;
  if (!is_gone) node_.peer(observer).notify<&Observer::finish>();
}

void Agent::dismiss_observers() {
  rpc::when_all_settled(node_.each(observers_).call<&Observer::finish>()).wait_for(1s);
}

std::vector<std::int32_t> Learner::select_actions(const std::vector<StateRow>& rows) {
  const std::lock_guard lock(mutex_);
  return learner_.select_actions(rows);
}

void Learner::learn(const std::vector<Rollout>& rollouts) {
  const std::lock_guard lock(mutex_);
  learner_.update(rollouts);
}

std::uint64_t Learner::policy_hash() {
  const std::lock_guard lock(mutex_);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const at::Tensor& parameter : learner_.policy()->parameters()) {
    const at::Tensor dense = parameter.detach().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(dense.data_ptr());
    for (std::size_t i = 0; i < dense.nbytes(); ++i)
      hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

}  // namespace batchrpc_examples
