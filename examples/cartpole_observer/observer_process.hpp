#pragma once

#include "cartpole_observer/group_options.hpp"

namespace batchrpc_examples {

/// Joins the group and plays until the agent has finished. Returns the exit code: 0; 1 if the agent
/// was lost, which is reported on standard error; 128 plus the number of the signal that ended it.
int run_observer(const GroupOptions& options);

}  // namespace batchrpc_examples
