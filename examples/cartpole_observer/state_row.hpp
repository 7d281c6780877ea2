#pragma once

#include <cstdint>

#include "cartpole_observer/cartpole_env.hpp"

namespace batchrpc_examples {

/// An observer's message in each step: its row of the agent's batch. Plain data, so that observers
/// need no LibTorch.
struct StateRow {
  std::int32_t observer = 0;  ///< counted from 0
  CartPoleEnv::Observation state{};
};

}  // namespace batchrpc_examples
