#include "cartpole/sweep.hpp"

#include <cstdio>

#include "cartpole/progress_display.hpp"

namespace batchrpc_examples {
namespace {

TrainingReport time_once(CartPoleOptions options, int world_size, bool batch,
                         const batchrpc::InterruptFlag& interrupts) {
  options.group.world_size = world_size;
  options.batch = batch;
  ProgressDisplay nothing_but_notices(ProgressMode::none);
  return train(options, std::chrono::steady_clock::now(), nothing_but_notices, interrupts);
}

}  // namespace

std::vector<SweepRow> run_sweep(const CartPoleOptions& options,
                                const batchrpc::InterruptFlag& interrupts) {
  std::vector<SweepRow> rows;
  std::printf("world size, seconds batch, seconds no batch, set-up batch, set-up no batch\n");
  for (const int world_size : options.sweep) {
    SweepRow row;
    row.world_size = world_size;
    row.batch = time_once(options, world_size, true, interrupts);
    row.no_batch = time_once(options, world_size, false, interrupts);
    std::printf("%10d, %13.2f, %16.2f, %12.2f, %15.2f\n", world_size, row.batch.work_seconds,
                row.no_batch.work_seconds, row.batch.setup_seconds, row.no_batch.setup_seconds);
    std::fflush(stdout);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace batchrpc_examples
