#include "ppo/policies.hpp"

#include <algorithm>
#include <array>
#include <batchrpc/base/error.hpp>
#include <batchrpc/torch/env.hpp>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/passing_folder.hpp"
#include "flat_parameters/flat_parameters.hpp"
#include "ppo/actor.hpp"
#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {

namespace rpc = batchrpc;

namespace {

std::shared_ptr<rpc::Policy> load(const std::string& path, const rpc::PolicyOptions& options,
                                  const std::shared_ptr<ActorCritic>& network) {
  std::shared_ptr<rpc::Policy> policy;
  try {
    policy = rpc::load_policy(path, options);
  } catch (const rpc::InvalidArgument& error) {
    throw rpc::InvalidArgument(std::string(error.what()) +
                               " (--policy script takes a file script.pt, --policy compiled a "
                               "folder updatable, both of the network that --env has: "
                               "docs/ppo.md)");
  }
  const rpc::PolicyInfo& info = policy->info();
  const rpc::PolicyInfo wanted =
      rpc::make_eager_policy(network, {.updatable = true, .observation = network->observation()})
          ->info();
  if (info.outputs != wanted.outputs) {
    throw rpc::InvalidArgument(path + ": the policy does not return logits (" +
                               to_string(wanted.outputs.front()) +
                               ") and a value: export one for this environment");
  }
  if (info.weights != wanted.weights) {
    throw rpc::InvalidArgument(path + ": the policy has other weights than the environment's " +
                               "network: export that network (docs/ppo.md)");
  }
  return policy;
}

class NetworkPolicy final : public rpc::WorkerPolicy {
 public:
  NetworkPolicy(std::shared_ptr<rpc::Policy> policy, std::shared_ptr<ActorCritic> network,
                rpc::EnvSpec spec, std::uint64_t seed)
      : policy_(std::move(policy)),
        network_(std::move(network)),
        weights_(*network_),
        spec_(std::move(spec)),
        seed_(seed) {}

  [[nodiscard]] std::size_t extras() const noexcept override { return kPolicyExtras; }

  std::uint64_t act(std::size_t buffer, std::size_t rows, std::span<const std::byte> observations,
                    std::span<std::byte> actions, std::span<float> extras) override {
    std::vector<std::int64_t> sizes{static_cast<std::int64_t>(rows)};
    const auto& shape = spec_.observation.shape;
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    const at::Tensor seen = at::from_blob(const_cast<std::byte*>(observations.data()), sizes,
                                          rpc::scalar_type_of(spec_.observation.type));
    const rpc::PolicyOutput output = policy_->forward(seen);
    Drawn& drawn = drawn_[buffer];
    if (drawn.version != output.version) drawn = {.version = output.version};
    const std::uint64_t seed = mix(mix(seed_, buffer), output.version);
    const Decisions decisions = draw_actions(output, seed, drawn.count);
    drawn.count += rows;
    std::memcpy(actions.data(), decisions.actions.data_ptr(), actions.size());
    for (std::size_t i = 0; i < rows; ++i) {
      extras[kPolicyExtras * i] = decisions.log_probs.data_ptr<float>()[i];
      extras[kPolicyExtras * i + 1] = decisions.values.data_ptr<float>()[i];
    }
    return static_cast<std::uint64_t>(decisions.version);
  }

  void update(rpc::Bytes weights, std::uint64_t version) override {
    const at::Tensor& values = weights_.values();
    if (weights.size() != values.nbytes()) {
      throw rpc::InvalidArgument("the weights are " + std::to_string(weights.size()) +
                                 " bytes, but the worker's network has " +
                                 std::to_string(values.nbytes()) +
                                 ": use the agent's --env and --policy");
    }
    const std::lock_guard lock(mutex_);
    std::memcpy(values.data_ptr(), weights.data(), weights.size());
    use_weights(*policy_, *network_, static_cast<std::int64_t>(version));
  }

 private:
  const std::shared_ptr<rpc::Policy> policy_;
  std::mutex mutex_;  // held during updates
  const std::shared_ptr<ActorCritic> network_;
  FlatParameters weights_;
  const rpc::EnvSpec spec_;
  const std::uint64_t seed_;
  // Counted for each version of the weights. So a replacement of this worker, or a worker after a
  // restart from a checkpoint, does not draw the same numbers again.
  struct Drawn {
    std::uint64_t version = 0;
    std::uint64_t count = 0;
  };
  // One for each buffer that the agent may use (VectorEnvOptions::buffers), since buffers act
  // independently.
  std::array<Drawn, kMostBuffers> drawn_{};
};

}  // namespace

std::shared_ptr<rpc::Policy> make_policy(const PpoOptions& options, const rpc::EnvSpec& spec,
                                         std::size_t rows) {
  const std::shared_ptr<ActorCritic> network = make_network(spec);
  rpc::PolicyOptions how;
  how.updatable = true;
  how.warm_up = {rows};
  how.observation = network->observation();
  switch (options.policy) {
    case PolicyKind::eager:
      return rpc::make_eager_policy(network, how);
    case PolicyKind::script: {
      how.kind = rpc::PolicyKind::script;
      if (!options.policy_path.empty()) return load(options.policy_path, how, network);
      const PassingFolder folder("ppo");
      const std::string path = folder.path() / "script.pt";
      actor_critic::save_script(*network, path);
      return load(path, how, network);
    }
    case PolicyKind::compiled:
      how.kind = rpc::PolicyKind::compiled;
      return load(options.policy_path, how, network);
  }
  throw rpc::InvalidArgument("unknown kind of policy");
}

std::shared_ptr<rpc::WorkerPolicy> make_network_policy(const PpoOptions& options,
                                                       const rpc::EnvSpec& spec,
                                                       std::uint64_t seed) {
  const auto rows = static_cast<std::size_t>(options.group_envs());
  return std::make_shared<NetworkPolicy>(make_policy(options, spec, rows), make_network(spec), spec,
                                         seed);
}

}  // namespace batchrpc_examples::ppo
