#include "rl_benchmark/agent.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <batchrpc/torch.hpp>
#include <utility>

#include "common/process_status.hpp"
#include "rl_benchmark/world.hpp"

namespace rl_benchmark {

namespace rpc = batchrpc;

std::int64_t Agent::select_action(std::int32_t observer, const at::Tensor& state) {
  const rpc::TimePoint arrived = std::chrono::steady_clock::now();
  Choice choice = policy_.choose(state.unsqueeze(0));
  const auto action = choice.actions.item<std::int64_t>();
  keep({.observers = {observer}, .log_probs = std::move(choice.log_probs)}, arrived);
  return action;
}

at::Tensor Agent::select_actions(const std::vector<std::int32_t>& observers,
                                 const at::Tensor& states, const rpc::BatchInfo& batch) {
  const auto first = std::min_element(
      batch.calls.begin(), batch.calls.end(),
      [](const auto& one, const auto& other) { return one.arrived < other.arrived; });
  Choice choice = policy_.choose(states);
  keep({.observers = observers, .log_probs = std::move(choice.log_probs)}, first->arrived);
  return std::move(choice.actions);
}

void Agent::keep(Kept kept, rpc::TimePoint first_arrival) {
  const std::chrono::duration<double> latency = std::chrono::steady_clock::now() - first_arrival;
  const std::lock_guard lock(mutex_);
  measured_.latencies.push_back(latency.count());
  measured_.rows.push_back(static_cast<std::int32_t>(kept.observers.size()));
  kept_.push_back(std::move(kept));
}

AgentEpisode Agent::finish_episode(std::vector<at::Tensor> rewards) {
  std::vector<Kept> kept;  // graphs are destroyed without the lock
  AgentEpisode measured;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
    measured = std::exchange(measured_, {});
  }
  for (const Kept& batch : kept)
    measured.kept += batch.log_probs.numel();
  for (const at::Tensor& of_one : rewards)
    measured.rewards += of_one.numel();
  const batchrpc_examples::ProcessStatus status = batchrpc_examples::process_status();
  measured.private_memory = status.anonymous_bytes;
  measured.resident_memory = status.resident_bytes;
  measured.threads = status.threads;
  return measured;
}

void expose_agent(const rpc::Node& node, const std::shared_ptr<Agent>& agent,
                  const Setting& setting, const std::vector<std::string>& observers) {
  const bool in_place = setting.num_worker_threads == 0;
  const auto check = [shape = setting.state_size](std::int32_t /*observer*/,
                                                  const at::Tensor& state) {
    rpc::require_row(state, at::kFloat, shape);
  };
  if (setting.batch) {
    rpc::BatchOptions options;
    options.max_size = observers.size();
    options.max_wait = setting.max_wait;
    if (setting.gather == Gather::all) options.all_of = observers;
    options.short_handler = in_place;
    const rpc::Batcher<std::int64_t(std::int32_t, at::Tensor)> select_action(
        options, &Agent::select_actions, agent, {.check = check});
    node.expose("select_action", select_action);
    node.expose(kStop, [select_action] { return select_action.close(rpc::BatchClose::drain); });
  } else {
    node.expose("select_action",
                [agent, check](std::int32_t observer, const at::Tensor& state) {
                  check(observer, state);
                  return agent->select_action(observer, state);
                },
                {.short_handler = in_place});
    node.expose(kStop, [] {});
  }
  node.expose<&Agent::finish_episode>(agent);
}

}  // namespace rl_benchmark
