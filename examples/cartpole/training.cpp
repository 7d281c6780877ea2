#include "cartpole/training.hpp"

#include <batchrpc/torch.hpp>
#include <utility>
#ifdef CARTPOLE_HAS_STATUS_PAGE
#include <batchrpc/status.hpp>
#endif

#include "cartpole/agent.hpp"
#include "cartpole/observer_processes.hpp"
#include "cartpole/progress.hpp"
#include "common/command_line.hpp"
#include "common/meeting_place.hpp"
#include "common/seconds_between.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;

namespace {

AgentOptions agent_options(const CartPoleOptions& options) {
  AgentOptions agent;
  agent.batch = options.batch;
  agent.learning = {.observers = options.observers(),
                    .steps = options.steps,
                    .learning_rate = options.learning_rate,
                    .dropout = options.dropout,
                    .normalize_returns = options.normalize_returns,
                    .seed = options.group.seed};
  return agent;
}

/// The agent's node, and the observers' processes if nothing else starts them.
class World {
 public:
  World(const GroupOptions& options, const batchrpc::InterruptFlag& interrupts)
      : group_(as_agent(options)), joining_(rpc::Node::start(agent_node(group_))) {
    if (!options.rank) processes_.emplace(group_);  // the agent's node is listening now
    while (!joining_.wait_for(std::chrono::milliseconds(50))) {
      interrupts.check();
      if (processes_) processes_->check();
    }
    node_.emplace(std::move(joining_).get());
  }

  [[nodiscard]] const rpc::Node& node() const { return *node_; }

  void wait_for_processes() {
    if (processes_) processes_->wait();
  }

 private:
  static GroupOptions as_agent(GroupOptions group) {
    if (!group.rank) {
      group.rank = 0;
      group.join = new_meeting_place("cartpole", group.transport);
    }
    return group;
  }
  static rpc::NodeOptions agent_node(const GroupOptions& group) {
    rpc::NodeOptions node = node_options(group);
    node.call_timeout = rpc::kNoTimeout;                // an episode takes what it takes
    node.profiling.operators = rpc::torch_operators();  // for the traces of the status page
    if (!group.status.empty()) add_status_page(node, group.status);
    return node;
  }
#ifdef CARTPOLE_HAS_STATUS_PAGE
  static void add_status_page(rpc::NodeOptions& node, const std::string& address) {
    node.status = rpc::status_page({.address = address});
  }
#else
  [[noreturn]] static void add_status_page(rpc::NodeOptions& /*node*/,
                                           const std::string& /*address*/) {
    throw UsageError(
        "--status: this program was built without batchrpc::status, which needs cpp-httplib "
        "(Debian: libcpp-httplib-dev); build it with that, or leave --status out");
  }
#endif

  GroupOptions group_;
  rpc::Future<rpc::Node> joining_;
  std::optional<rpc::Node> node_;
  std::optional<ObserverProcesses>
      processes_;  // must end before the node, or they would report its loss
};

}  // namespace

TrainingReport train(const CartPoleOptions& options, Clock::time_point started,
                     ProgressDisplay& display, const batchrpc::InterruptFlag& interrupts) {
  use_one_torch_thread();
  keep_freed_memory();
  World world(options.group, interrupts);
  const std::string page = world.node().status_address();
  if (!page.empty()) display.notice("status page at " + page);
  Agent agent(
      world.node(), agent_options(options),
      [&display](const std::string& line) { display.notice(line); }, interrupts);
  const Clock::time_point joined = Clock::now();

  TrainingReport report;
  report.setup_seconds = seconds_between(started, joined);
  TrainingProgress progress;
  const int most = options.until_solved ? options.most_episodes : options.episodes;
  while (progress.episodes() < most && !(options.until_solved && progress.solved())) {
    const Clock::time_point begin = Clock::now();
    const std::vector<Rollout> rollouts = agent.run_episode();
    const Clock::time_point played = Clock::now();
    agent.finish_episode(rollouts);
    const Clock::time_point end = Clock::now();

    progress.add_episode(rollouts);
    EpisodeRecord record = make_record(progress, rollouts);
    record.seconds = seconds_between(begin, end);
    report.env_steps += record.env_steps;
    report.learning_seconds += seconds_between(played, end);
    report.work_seconds = seconds_between(joined, end);
    report.episodes.push_back(record);
    display.episode(record, progress);
  }
  report.running_reward = progress.running_reward();
  if (progress.solved()) report.solved_at_episode = progress.episodes();
  report.lost_observers = agent.lost_observers();
  report.policy_hash = agent.policy_hash();
  agent.dismiss_observers();
  world.wait_for_processes();
  return report;
}

}  // namespace batchrpc_examples
