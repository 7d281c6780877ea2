#include "env/env_description.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc::env {
namespace {

std::string described(const EnvSpec& spec, std::optional<std::uint32_t> extras) {
  return " (" + to_string(spec) + ", and " +
         (extras ? std::to_string(*extras) + " numbers of its policy" : "no policy") + ")";
}

}  // namespace

void EnvDescription::accept(const std::string& worker, const OpenReply& reply,
                            const MessageLimits& limits) {
  require_usable(reply.spec);
  if (spec_ != nullptr) {
    if (*spec_ == reply.spec && extras_ == reply.extras) return;
    throw InvalidArgument("VectorEnv: the environments of worker " + worker +
                          described(reply.spec, reply.extras) + " differ from those of " +
                          (told_by_ == worker ? "the previous process" : told_by_) +
                          described(*spec_, extras_));
  }
  const StepShape shape{.envs = shape_.envs,
                        .observation_bytes = reply.spec.observation.bytes(),
                        .action_bytes = reply.spec.action.bytes(),
                        .extras = reply.extras.value_or(0)};
  const std::size_t most = env::most_steps(shape, limits);
  if (most == 0) {
    throw InvalidArgument("VectorEnv: " + std::to_string(shape.envs) + " environments of worker " +
                          worker + " (" + to_string(reply.spec) +
                          ") are more than one message can carry");
  }
  spec_ = std::make_shared<const EnvSpec>(reply.spec);
  shape_ = shape;
  extras_ = reply.extras;
  most_steps_ = most;
  told_by_ = worker;
}

void EnvDescription::require_steps(std::size_t steps) const {
  if (steps > 0 && steps <= most_steps_) return;
  throw InvalidArgument("VectorEnv: " + std::to_string(steps) +
                        " steps were requested, but one message can carry 1 to " +
                        std::to_string(most_steps_) +
                        ", because their results arrive in one message");
}

void EnvDescription::require_policy(const std::string& caller) const {
  if (extras_) return;
  throw InvalidArgument("VectorEnv::" + caller +
                        ": the workers have no policy; set EnvWorkerOptions::policy");
}

}  // namespace batchrpc::env
