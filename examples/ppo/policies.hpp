#pragma once

#include <batchrpc/env/worker_policy.hpp>
#include <batchrpc/torch/policy.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ppo/network.hpp"
#include "ppo/options.hpp"

namespace batchrpc_examples::ppo {

/// Makes a policy of the kind in the options, for environments with that spec and for `rows` of
/// them at a time. It is updatable, and has no training's weights until it receives some. An eager
/// policy, and a script without PpoOptions::policy_path, is made here; others are loaded. Throws
/// batchrpc::InvalidArgument for a file that is not a policy, or is one of another network.
std::shared_ptr<batchrpc::Policy> make_policy(const PpoOptions& options,
                                              const batchrpc::EnvSpec& spec, std::size_t rows);

/// The numbers that a worker's policy adds to each step: the log-probability of the action, and the
/// value of the observation before it.
inline constexpr std::size_t kPolicyExtras = 2;

/// The policy of a worker. It returns log-probability and value besides each action, and takes
/// weights as float32 [parameters], in the order of the network's parameters(). `seed` determines
/// its draws.
std::shared_ptr<batchrpc::WorkerPolicy> make_network_policy(const PpoOptions& options,
                                                            const batchrpc::EnvSpec& spec,
                                                            std::uint64_t seed);

}  // namespace batchrpc_examples::ppo
