#pragma once

#include "soak/options.hpp"

namespace soak {

/// A child's main(): a node that calls and is called, until the conductor says that it may end.
int run_participant(const Options& options);

}  // namespace soak
