#pragma once

#include <batchrpc/env/worker_policy.hpp>
#include <batchrpc/torch/policy.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ppo/network.hpp"
#include "ppo/options.hpp"

namespace batchrpc_examples::ppo {

/// A policy of the kind that the options ask for, for environments of that spec, which will act for
/// `rows` of them at a time; updatable, its weights are of nobody until it has been given some. Of
/// an eager one, and of a script without PpoOptions::policy_path, all is made here; else it is
/// loaded. Throws batchrpc::InvalidArgument for a file that is none, or of another network.
std::shared_ptr<batchrpc::Policy> make_policy(const PpoOptions& options,
                                              const batchrpc::EnvSpec& spec, std::size_t rows);

/// Numbers that a worker's policy says of each step: the log-probability of the action, and the
/// value of the observation before it.
inline constexpr std::size_t kPolicyExtras = 2;

/// The policy of a worker: gives log-probability and value beside each action, and takes weights as
/// float32 [parameters], in the order of the network's parameters(). Its draws are those of
/// `seed`.
std::shared_ptr<batchrpc::WorkerPolicy> make_network_policy(const PpoOptions& options,
                                                            const batchrpc::EnvSpec& spec,
                                                            std::uint64_t seed);

}  // namespace batchrpc_examples::ppo
