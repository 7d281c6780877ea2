#include "env/env_driver.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/when_all.hpp"
#include "env/action_check.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kMostBuffers = 16;
constexpr std::size_t kMostEnvs = std::size_t{1} << 20;

void require_usable(const VectorEnvOptions& options) {
  const auto refuse = [](const std::string& what) { throw InvalidArgument("VectorEnv: " + what); };
  if (options.workers.empty()) refuse("there are no workers");
  std::set<std::string> names;
  for (const std::string& name : options.workers) {
    if (!names.insert(name).second) refuse("worker " + name + " is named twice");
  }
  if (options.service.empty()) refuse("the service has no name");
  if (options.buffers == 0 || options.buffers > kMostBuffers) {
    refuse(std::to_string(options.buffers) + " buffers; allowed are 1 to " +
           std::to_string(kMostBuffers));
  }
  if (options.envs_per_worker == 0 || options.envs_per_worker > kMostEnvs) {
    refuse(std::to_string(options.envs_per_worker) + " environments a worker; allowed are 1 to " +
           std::to_string(kMostEnvs));
  }
  if (options.step_timeout <= Duration::zero()) refuse("the step_timeout is not positive");
  if (options.open_timeout <= Duration::zero()) refuse("the open_timeout is not positive");
}

}  // namespace

VectorEnv::State::State(const Node& node, VectorEnvOptions options)
    : options_(std::move(options)),
      core_(node.core()),
      loop_(node.host().loop),
      seed_(options_.seed),
      workers_(options_.workers.size()) {
  require_usable(options_);
  for (std::size_t w = 0; w < workers_.size(); ++w)
    workers_[w].told = {.name = options_.workers[w], .live = false};
  groups_.resize(workers_.size() * options_.buffers);
}

void VectorEnv::State::with_node(const std::function<void(const Node&)>& use) const {
  Node::visit(core_, use);
}

void VectorEnv::State::reset(std::optional<std::uint64_t> seed) {
  std::vector<Order> orders;
  {
    std::unique_lock lock(mutex_);
    wait_until(lock, [this] { return count(Phase::pending) == 0; });
    if (!seed && !was_reset_) seed = seed_;
    was_reset_ = true;
    if (seed) seed_ = *seed;
    sent_.clear();
    arrived_.clear();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].phase != Phase::lost) orders.push_back(order(g, 1));
    }
    if (orders.empty()) throw_nothing();
  }
  for (const Order& order : orders) {
    const std::uint64_t first = order.group * options_.envs_per_worker;
    send_reset(order, seed ? std::optional(*seed + first) : std::nullopt);
  }
}

void VectorEnv::State::step(std::span<const EnvBatch::Group> sources,
                            std::span<const std::byte> actions, std::size_t steps,
                            const std::function<bool(std::size_t)>& skip) {
  const std::size_t group_actions = steps * options_.envs_per_worker * action_bytes_;
  if (steps == 0 || actions.size() != sources.size() * group_actions || actions.empty()) {
    throw InvalidArgument("VectorEnv::step_async: " + std::to_string(steps) + " steps of " +
                          std::to_string(sources.size()) + " groups of " +
                          std::to_string(options_.envs_per_worker) + " environments take " +
                          std::to_string(sources.size() * group_actions) + " bytes of actions (" +
                          to_string(spec_->action) + " each), and there are " +
                          std::to_string(actions.size()));
  }
  env::require_allowed(*spec_, actions, skip);
  std::vector<std::size_t> places;
  const std::vector<Order> orders = order_steps(sources, steps, places);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    send_step(orders[i], steps,
              Bytes::copy(actions.subspan(places[i] * group_actions, group_actions)));
  }
}

void VectorEnv::State::roll_out(std::span<const EnvBatch::Group> sources, std::size_t steps) {
  std::vector<std::size_t> places;
  for (const Order& order : order_steps(sources, steps, places))
    send_step(order, steps, {});
}

// The groups of a batch that can be stepped, and their places in it. Those of environments that
// are gone are left out.
std::vector<VectorEnv::State::Order> VectorEnv::State::order_steps(
    std::span<const EnvBatch::Group> sources, std::size_t steps, std::vector<std::size_t>& places) {
  const std::size_t most = env::kMostReplyBytes / group_bytes(1);
  if (steps == 0 || steps > std::max<std::size_t>(most, 1)) {
    throw InvalidArgument("VectorEnv: " + std::to_string(steps) +
                          " steps in one message; allowed are 1 to " + std::to_string(most) +
                          ", since their observations come together");
  }
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> groups;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const EnvBatch::Group& source = sources[i];
    const std::size_t g = std::size_t{source.buffer} * worker_count() + source.worker;
    if (source.worker >= worker_count() || g >= groups_.size()) {
      throw InvalidArgument("VectorEnv: a batch of another VectorEnv");
    }
    const Worker& worker = workers_[source.worker];
    if (!worker.told.live || worker.session != source.session) continue;
    if (groups_[g].phase != Phase::held || std::ranges::find(groups, g) != groups.end()) {
      throw InvalidArgument("VectorEnv: the environments of worker " + worker.told.name +
                            ", buffer " + std::to_string(source.buffer) +
                            ", are under way already: step_wait() or recv() first, and step a "
                            "batch once");
    }
    groups.push_back(g);
    places.push_back(i);
  }
  std::vector<Order> orders;
  orders.reserve(groups.size());
  for (const std::size_t g : groups)
    orders.push_back(order(g, steps));
  return orders;
}

VectorEnv::State::Order VectorEnv::State::order(std::size_t g, std::size_t steps) {
  const std::size_t buffer = buffer_of(g);
  Bytes place;
  if (in_order_) {
    place = memory_.place_in(buffer, worker_of(g), worker_count(), group_bytes(steps));
  }
  Group& group = groups_[g];
  group.phase = Phase::pending;
  ++group.ticket;
  group.steps = static_cast<std::uint32_t>(steps);
  group.place = std::move(place);
  group.reply = {};
  if (std::ranges::find(sent_, buffer) == sent_.end()) sent_.push_back(buffer);
  return {.group = g, .ticket = group.ticket, .session = workers_[worker_of(g)].session};
}

detail::OutgoingOptions VectorEnv::State::how_to_call(const Node& node, const Order& order,
                                                      std::size_t steps) {
  CallOptions options;
  options.timeout = options_.step_timeout;
  options.detached = true;
  detail::OutgoingOptions how = node.outgoing(options);
  if (group_bytes(steps) > detail::kInlineBytes) {
    how.payload_target = std::make_unique<detail::PayloadTarget>(
        [self = shared_from_this(), order, place = Bytes()](
            std::size_t index, std::size_t size) mutable -> std::span<std::byte> {
          if (index != 0) return {};
          place = self->place_for(order, size);
          return {place.mutable_data(), place.size()};
        });
  }
  return how;
}

void VectorEnv::State::send_step(const Order& order, std::size_t steps, Bytes actions) {
  const auto answered = [self = shared_from_this(), order](Result<env::StepReply> result) {
    self->take(order, std::move(result));
  };
  try {
    with_node([&](const Node& node) {
      using Traits = detail::FunctionTraits<env::StepFunction>;
      const std::string name = env::step_name(options_.service);
      const auto key = detail::function_key(
          name, detail::WireSignature<Traits::Result, Traits::Arguments>::text());
      const auto submit = [&](const detail::FunctionKey& function, detail::OutgoingOptions&& how,
                              Encoder& encoder, detail::ReplyHandler&& handler) {
        node.submit(options_.workers[worker_of(order.group)], function, std::move(how), encoder,
                    std::move(handler));
      };
      auto reply =
          detail::send_call<env::StepReply, std::uint64_t, std::uint32_t, std::uint32_t, Bytes>(
              submit, key, how_to_call(node, order, steps), order.session,
              static_cast<std::uint32_t>(buffer_of(order.group)), static_cast<std::uint32_t>(steps),
              std::move(actions));
      static_cast<void>(std::move(reply).then(answered));
    });
  } catch (...) {
    answered(std::current_exception());
  }
}

void VectorEnv::State::send_reset(const Order& order, std::optional<std::uint64_t> seed) {
  const auto answered = [self = shared_from_this(), order](Result<env::StepReply> result) {
    self->take(order, std::move(result));
  };
  try {
    with_node([&](const Node& node) {
      CallOptions options;
      options.timeout = options_.step_timeout;
      options.detached = true;
      auto reply = node.call_with<env::ResetFunction>(
          options, options_.workers[worker_of(order.group)], env::reset_name(options_.service),
          order.session, static_cast<std::uint32_t>(buffer_of(order.group)), seed);
      static_cast<void>(std::move(reply).then(answered));
    });
  } catch (...) {
    answered(std::current_exception());
  }
}

Future<void> VectorEnv::State::push_policy(Bytes weights, std::uint64_t version) {
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    weights_ = weights;
    weights_version_ = version;
    has_weights_ = true;
    for (const Worker& worker : workers_) {
      if (worker.told.live) names.push_back(worker.told.name);
    }
  }
  std::vector<Future<void>> taken;
  with_node([&](const Node& node) {
    taken = node.call_all<env::PolicyFunction>(names, env::policy_name(options_.service), weights,
                                               version);
  });
  return when_all_settled(std::move(taken)).then([](const std::vector<Result<void>>& results) {
    for (const Result<void>& result : results) {
      if (result.has_value()) continue;
      // Of others the worker is gone, as its steps will say.
      if (result.code() == ErrorCode::remote_error || result.code() == ErrorCode::invalid_argument)
        std::rethrow_exception(result.error());
    }
  });
}

std::size_t VectorEnv::State::under_way() const {
  const std::lock_guard lock(mutex_);
  return count(Phase::pending) + count(Phase::ready);
}

std::vector<VectorEnv::WorkerState> VectorEnv::State::worker_states() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerState> states;
  for (const Worker& worker : workers_)
    states.push_back(worker.told);
  return states;
}

}  // namespace batchrpc
