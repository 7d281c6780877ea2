#include <exception>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "env/env_driver.hpp"

namespace batchrpc {
namespace {

// Options for a call that continues even if the driver, handling a call itself, is cancelled.
CallOptions detached(Duration timeout) {
  CallOptions options;
  options.timeout = timeout;
  options.detached = true;
  return options;
}

}  // namespace

void VectorEnv::State::with_node(const std::function<void(const Node&)>& use) const {
  use(*detail::NodeAccess::handle(core_));
}

detail::OutgoingOptions VectorEnv::State::how_to_call(const Order& order) {
  detail::OutgoingOptions how =
      detail::NodeAccess::outgoing(detached(options_.step_timeout), core_.get());
  if (description_.observation_bytes(order.wanted.steps) > detail::kInlineBytes) {
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

void VectorEnv::State::send_step(const Order& order, Bytes actions) {
  const auto answered = [self = shared_from_this(), order](Result<env::StepReply> result) {
    self->take(order, std::move(result));
  };
  try {
    using Traits = detail::FunctionTraits<env::StepFunction>;
    const detail::SubmitTo submit{core_.get(), options_.workers[worker_of(order.group)]};
    const std::string name = env::step_name(options_.service);
    static_cast<void>(detail::call_as<Traits>(
                          submit, detail::key_of<Traits>(name), how_to_call(order), order.session,
                          static_cast<std::uint32_t>(groups_.buffer_of(order.group)),
                          static_cast<std::uint32_t>(order.wanted.steps), std::move(actions))
                          .then(answered));
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
      auto reply = node.peer(options_.workers[worker_of(order.group)])
                       .with(detached(options_.step_timeout))
                       .call<env::ResetFunction>(
                           env::reset_name(options_.service), order.session,
                           static_cast<std::uint32_t>(groups_.buffer_of(order.group)), seed);
      static_cast<void>(std::move(reply).then(answered));
    });
  } catch (...) {
    answered(std::current_exception());
  }
}

Future<void> VectorEnv::State::send_weights(std::size_t worker, const env::SessionId& session,
                                            const Weights& weights, Duration timeout) {
  try {
    std::optional<Future<void>> taken;
    with_node([&](const Node& node) {
      taken = node.peer(options_.workers[worker])
                  .with(detached(timeout))
                  .call<env::PolicyFunction>(env::policy_name(options_.service), session,
                                             weights.bytes, weights.version);
    });
    return std::move(*taken);
  } catch (...) {
    return make_failed_future<void>(std::current_exception());
  }
}

Future<env::OpenReply> VectorEnv::State::send_open(std::size_t worker, Duration timeout) {
  const env::OpenRequest request{.buffers = static_cast<std::uint32_t>(options_.buffers),
                                 .envs = static_cast<std::uint32_t>(options_.envs_per_worker),
                                 .autoreset = options_.autoreset};
  try {
    std::optional<Future<env::OpenReply>> opened;
    with_node([&](const Node& node) {
      opened = node.peer(options_.workers[worker])
                   .with(detached(timeout))
                   .call<env::OpenFunction>(env::open_name(options_.service), request);
    });
    return std::move(*opened);
  } catch (...) {
    return make_failed_future<env::OpenReply>(std::current_exception());
  }
}

}  // namespace batchrpc
