#include "env/env_driver.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/env/worker_policy.hpp"
#include "env/action_check.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

using env::GroupPhase;

namespace {

constexpr std::size_t kMostEnvs = std::size_t{1} << 20;

VectorEnvOptions usable_options(VectorEnvOptions options) {
  const auto refuse = [](const std::string& what) { throw InvalidArgument("VectorEnv: " + what); };
  if (options.workers.empty()) refuse("workers is empty");
  std::set<std::string> names;
  for (const std::string& name : options.workers) {
    if (!names.insert(name).second) refuse("worker " + name + " is named twice");
  }
  if (options.service.empty()) refuse("service is empty");
  if (options.buffers == 0 || options.buffers > WorkerPolicy::kMostBuffers) {
    refuse("buffers is " + std::to_string(options.buffers) + ", but must be from 1 to " +
           std::to_string(WorkerPolicy::kMostBuffers));
  }
  if (options.envs_per_worker == 0 || options.envs_per_worker > kMostEnvs) {
    refuse("envs_per_worker is " + std::to_string(options.envs_per_worker) +
           ", but must be from 1 to " + std::to_string(kMostEnvs));
  }
  if (options.step_timeout <= Duration::zero()) refuse("step_timeout must be positive");
  if (options.open_timeout <= Duration::zero()) refuse("open_timeout must be positive");
  return options;
}

}  // namespace

VectorEnv::State::State(const Node& node, VectorEnvOptions options)
    : options_(usable_options(std::move(options))),
      core_(detail::NodeAccess::core(node)),
      loop_(core_->loop()),
      description_(options_.envs_per_worker),
      seed_(options_.seed),
      workers_(options_.workers.size()),
      groups_(options_.workers.size(), options_.buffers, core_->payload_memory()) {
  for (std::size_t w = 0; w < workers_.size(); ++w)
    workers_[w].told = {.name = options_.workers[w], .live = false};
}

void VectorEnv::State::reset(std::optional<std::uint64_t> seed) {
  std::vector<Order> orders;
  {
    const auto lock = lock_when([this] { return groups_.count(GroupPhase::pending) == 0; });
    if (!seed && !was_reset_) seed = seed_;
    was_reset_ = true;
    if (seed) seed_ = *seed;
    groups_.start_over();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_.phase(g) != GroupPhase::lost) orders.push_back(order(g, {}));
    }
    if (orders.empty()) throw_nothing();
  }
  for (const Order& order : orders) {
    const std::uint64_t first = order.group * options_.envs_per_worker;
    send_reset(order, seed ? std::optional(*seed + first) : std::nullopt);
  }
}

void VectorEnv::State::step(std::span<const EnvBatch::Group> sources,
                            std::span<const std::byte> actions, std::size_t steps) {
  description_.require_steps(steps);
  const std::size_t group_actions = description_.action_bytes(steps);
  if (actions.size() != sources.size() * group_actions) {
    throw InvalidArgument("VectorEnv::step_async: " + std::to_string(steps) + " steps of " +
                          std::to_string(sources.size()) + " groups of " +
                          std::to_string(options_.envs_per_worker) + " environments need " +
                          std::to_string(sources.size() * group_actions) + " bytes of actions (" +
                          to_string(spec().action) + " each), but got " +
                          std::to_string(actions.size()));
  }
  const std::vector<Target> targets = targets_of(sources);
  require_allowed(targets, actions, steps);
  for (const Order& order : order_all(targets, {.steps = steps})) {
    send_step(order, Bytes::copy(actions.subspan(order.place * group_actions, group_actions)));
  }
}

void VectorEnv::State::roll_out(std::span<const EnvBatch::Group> sources, std::size_t steps) {
  description_.require_steps(steps);
  description_.require_policy("rollout_async");
  for (const Order& order : order_all(targets_of(sources), {.steps = steps, .rollout = true}))
    send_step(order, {});
}

void VectorEnv::State::require_own(const EnvBatch& batch) const {
  if (batch.spec == description_.spec() && batch.envs == options_.envs_per_worker) return;
  throw InvalidArgument("VectorEnv: the batch belongs to another VectorEnv, or to none");
}

// Returns the groups of a batch that can be stepped, leaving out those whose environments are gone.
std::vector<VectorEnv::State::Target> VectorEnv::State::targets_of(
    std::span<const EnvBatch::Group> sources) const {
  const std::lock_guard lock(mutex_);
  std::vector<Target> targets;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const EnvBatch::Group& source = sources[i];
    const std::size_t g = std::size_t{source.buffer} * worker_count() + source.worker;
    if (source.worker >= worker_count() || g >= groups_.size()) {
      throw InvalidArgument("VectorEnv: the batch belongs to another VectorEnv");
    }
    const Worker& worker = workers_[source.worker];
    if (!worker.told.live || worker.epoch != source.session) continue;
    if (groups_.phase(g) != GroupPhase::held ||
        std::ranges::find(targets, g, &Target::group) != targets.end()) {
      throw InvalidArgument("VectorEnv: the environments of worker " + worker.told.name +
                            ", buffer " + std::to_string(source.buffer) +
                            ", are already being stepped: call step_wait() or recv() first, and "
                            "step each batch only once");
    }
    if (groups_.ticket(g) != source.turn) {
      throw InvalidArgument("VectorEnv: the environments of worker " + worker.told.name +
                            ", buffer " + std::to_string(source.buffer) +
                            ", have been stepped or reset since that batch; step the latest batch");
    }
    targets.push_back({.group = g, .place = i, .epoch = worker.epoch});
  }
  return targets;
}

// Checks the actions that will be used.
void VectorEnv::State::require_allowed(const std::vector<Target>& targets,
                                       std::span<const std::byte> actions,
                                       std::size_t steps) const {
  const std::size_t envs = options_.envs_per_worker;
  std::vector<std::uint8_t> nobodys(actions.size() / description_.shape().action_bytes, 1);
  {
    const std::lock_guard lock(mutex_);
    for (const Target& target : targets) {
      const auto first = nobodys.begin() + static_cast<std::ptrdiff_t>(target.place * steps * envs);
      std::fill_n(first, steps * envs, std::uint8_t{0});
      std::ranges::copy(groups_.resting(target.group), first);
    }
  }
  env::require_allowed(spec(), actions, [&](std::size_t i) { return nobodys[i] != 0; });
}

// A worker may have been lost and have come back since its group became a target.
std::vector<VectorEnv::State::Order> VectorEnv::State::order_all(const std::vector<Target>& targets,
                                                                 const env::Wanted& wanted) {
  std::vector<Order> orders;
  orders.reserve(targets.size());
  const std::lock_guard lock(mutex_);
  for (const Target& target : targets) {
    const Worker& worker = workers_[worker_of(target.group)];
    if (!worker.told.live || worker.epoch != target.epoch) continue;
    orders.push_back(order(target.group, wanted));
    orders.back().place = target.place;
  }
  return orders;
}

VectorEnv::State::Order VectorEnv::State::order(std::size_t g, const env::Wanted& wanted) {
  return {.group = g,
          .ticket = groups_.order(g, wanted, description_.observation_bytes(wanted.steps)),
          .session = workers_[worker_of(g)].session,
          .wanted = wanted};
}

std::size_t VectorEnv::State::under_way() const {
  const std::lock_guard lock(mutex_);
  return groups_.count(GroupPhase::pending) + groups_.count(GroupPhase::ready);
}

std::vector<VectorEnv::WorkerState> VectorEnv::State::worker_states() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerState> states;
  for (const Worker& worker : workers_)
    states.push_back(worker.told);
  return states;
}

}  // namespace batchrpc
