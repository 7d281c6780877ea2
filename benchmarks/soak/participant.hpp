#pragma once

#include "soak/options.hpp"

namespace soak {

/// A child's main(): a node that makes and answers calls until the conductor tells it to end.
int run_participant(const Options& options);

}  // namespace soak
