#pragma once

#include <vector>

#include "cartpole/options.hpp"
#include "cartpole/training.hpp"
#include "common/interrupt.hpp"

namespace batchrpc_examples {

struct SweepRow {
  int world_size = 0;
  TrainingReport batch{};
  TrainingReport no_batch{};
};

/// Times batch against no batch at the options' world sizes, and prints the tutorial's table on
/// standard output, a row as soon as it is there. Throws as train() does.
std::vector<SweepRow> run_sweep(const CartPoleOptions& options, const InterruptFlag& interrupts);

}  // namespace batchrpc_examples
