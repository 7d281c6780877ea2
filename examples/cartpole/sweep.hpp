#pragma once

#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "cartpole/options.hpp"
#include "cartpole/training.hpp"

namespace batchrpc_examples {

struct SweepRow {
  int world_size = 0;
  TrainingReport batch{};
  TrainingReport no_batch{};
};

/// Compares batch with no batch at the options' world sizes. Prints the tutorial's table on
/// standard output, each row as soon as it is known. Throws as train() does.
std::vector<SweepRow> run_sweep(const CartPoleOptions& options,
                                const batchrpc::InterruptFlag& interrupts);

}  // namespace batchrpc_examples
