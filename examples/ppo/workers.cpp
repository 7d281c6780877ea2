#include "ppo/workers.hpp"

#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "common/meeting_place.hpp"
#include "common/seconds_between.hpp"
#include "games/games.hpp"
#include "ppo/policies.hpp"
#include "ppo/random.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples::ppo {

namespace rpc = batchrpc;

namespace {

std::string name_of(int rank) { return rank == 0 ? "agent" : "worker" + std::to_string(rank); }

rpc::NodeOptions node_options(const PpoOptions& options, const std::string& join, int rank) {
  return {.name = name_of(rank),
          .rank = rank,
          .world_size = options.workers + 1,
          .join = join,
          .logging = {.level = rpc::LogLevel::error}};
}

// Adds the program's options to errors, which use the library's words.
rpc::Node join_others(const PpoOptions& options, const std::string& join, int rank) {
  const auto in_own_words = [](const rpc::Error& error) {
    return std::string(error.what()) + " (--workers W is a world_size of W + 1, --rank the rank)";
  };
  try {
    return rpc::Node(node_options(options, join, rank));
  } catch (const rpc::InvalidArgument& error) {
    throw rpc::InvalidArgument(in_own_words(error));
  } catch (const rpc::JoinFailed& error) {
    throw rpc::JoinFailed(in_own_words(error));
  }
}

std::vector<std::string> worker_names(const PpoOptions& options) {
  std::vector<std::string> names;
  for (int rank = 1; rank <= options.workers; ++rank)
    names.push_back(name_of(rank));
  return names;
}

void run_worker_at(const PpoOptions& options, const std::string& join, int rank) {
  use_one_torch_thread();
  rpc::Node node = join_others(options, join, rank);
  std::shared_ptr<rpc::WorkerPolicy> policy;
  if (options.inference == InferencePlace::worker) {
    policy = make_network_policy(options, make_env(options.env)->spec(),
                                 mix(options.seed, static_cast<std::uint64_t>(rank)));
  }
  const rpc::EnvWorker worker(
      node, rpc::group_of([&options] { return make_env(options.env); }),
      {.lanes = rpc::thread_lanes(static_cast<std::size_t>(options.env_threads)),
       .policy = policy});
  node.shutdown_together();
}

}  // namespace

Workers::Workers(const PpoOptions& options) : options_(options) {
  if (options.inference == InferencePlace::worker && !options.policy_path.empty()) {
    // Creating the policy here reports errors once, not in each worker. It uses one thread of
    // LibTorch, which starts no others.
    use_one_torch_thread();
    (void)make_policy(options, make_env(options.env)->spec(), 1);
  }
  std::string join = options.join;
  if (!options.rank) {
    if (join.empty()) join = new_meeting_place("ppo", TransportChoice::automatic);
    for (int rank = 1; rank <= options.workers; ++rank) {
      children_.emplace_back([&options, join, rank] {
        std::signal(SIGINT,
                    SIG_IGN);  // a terminal sends it to all processes; the agent ends the run
        run_worker_at(options, join, rank);
        return 0;
      });
    }
  }
  node_.emplace(join_others(options, join, 0));
}

Workers::~Workers() {
  envs_.reset();
  node_->shutdown_together(std::chrono::milliseconds(500));
  for (ChildProcess& child : children_)
    child.wait_for(std::chrono::seconds(1));
}

rpc::VectorEnv& Workers::envs() {
  const auto buffers = static_cast<std::size_t>(options_.buffers);
  envs_.emplace(*node_, rpc::VectorEnvOptions{
                            .workers = worker_names(options_),
                            .envs_per_worker = static_cast<std::size_t>(options_.group_envs()),
                            .buffers = buffers,
                            .autoreset = rpc::Autoreset::same_step,
                            .step_timeout = duration_of(options_.step_timeout)});
  const rpc::EnvSpec wanted = make_env(options_.env)->spec();
  if (envs_->spec() != wanted) {
    throw rpc::InvalidArgument(
        "the workers' environments (" + to_string(envs_->spec()) + ") differ from those of --env " +
        options_.env + " (" + to_string(wanted) + "): start agent and workers with the same --env");
  }
  if (options_.inference == InferencePlace::worker && envs_->extras() != kPolicyExtras) {
    throw rpc::InvalidArgument(
        "the workers have no policy: start each with --inference worker and with the agent's "
        "--policy");
  }
  if (options_.inference == InferencePlace::agent && envs_->extras() != 0) {
    throw rpc::InvalidArgument(
        "the workers have a policy, but the agent chooses: start them without --inference worker");
  }
  const auto steps = static_cast<std::size_t>(options_.settings.steps);
  if (options_.inference == InferencePlace::worker && steps > envs_->max_steps()) {
    throw rpc::InvalidArgument(
        "--steps " + std::to_string(steps) +
        ": a worker sends the steps of its environments in one message, which can carry " +
        std::to_string(envs_->max_steps()) + ": use fewer, or --inference agent");
  }
  return *envs_;
}

void Workers::notify_changes(const std::function<void(const std::string&)>& notice) {
  auto now = envs_->workers();
  for (const std::string& change : worker_changes(told_, now))
    notice(change);
  told_ = std::move(now);
}

std::vector<std::string> worker_changes(const std::vector<rpc::VectorEnv::WorkerState>& before,
                                        const std::vector<rpc::VectorEnv::WorkerState>& now) {
  const bool others_live =
      std::any_of(now.begin(), now.end(), [](const auto& worker) { return worker.live; });
  std::vector<std::string> changes;
  for (std::size_t w = 0; w < now.size(); ++w) {
    const auto was = before.empty() ? rpc::VectorEnv::WorkerState{} : before[w];
    const bool lost = now[w].losses > was.losses;
    const bool refused = now[w].refusals > was.refusals && !now[w].live && !now[w].opening;
    if (lost && !refused) {
      changes.push_back(now[w].last_loss + (others_live ? "; the others continue" : ""));
    }
    if (now[w].live && (lost || !was.live)) changes.push_back(now[w].name + " is back");
    if (refused) changes.push_back(now[w].last_loss + "; start it with the agent's options");
  }
  return changes;
}

void run_worker(const PpoOptions& options, int rank) { run_worker_at(options, options.join, rank); }

}  // namespace batchrpc_examples::ppo
