#pragma once

#include "cartpole_observer/group_options.hpp"

namespace batchrpc_examples {

/// Joins the group and plays for the agent until that is through. Returns the exit code: 0; 1 when
/// the agent was lost, which it says on standard error; 128 and its number when a
/// signal ended it.
int run_observer(const GroupOptions& options);

}  // namespace batchrpc_examples
