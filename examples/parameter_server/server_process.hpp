#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "parameter_server/options.hpp"
#include "parameter_server/run_record.hpp"

namespace batchrpc_examples {

/// The results of a server's process.
struct ServerRun {
  std::int64_t elements = 0;  ///< parameters of the whole model
  std::int64_t first_iteration = 0;
  double setup_seconds = 0;  ///< until the first iteration
  double work_seconds = 0;
  std::int64_t memory_bytes = 0;  ///< the maximum, minus what the process uses without a model
  std::int64_t message_bytes = 0;
  std::vector<IterationRecord> iterations;
  std::vector<std::string> lost{};
  std::string
      gradients;  ///< whose gradients the model has had: gradient_settings(), or kChangingTrainers
  std::vector<std::string> failed_trainers{};  ///< with the reasons that they gave
  std::vector<std::string> failed_servers{};   ///< and how they ended
  std::string checkpoint_error;  ///< why the last checkpoint was not written; empty: it was
  at::Tensor values;  ///< with --check trainer 0's final values, else this server's part; undefined
                      ///< if the run failed
  std::string error;  ///< why the run failed; empty: it did not
};

/// Runs a server. If the options have no rank, it starts all other processes with `arguments`, the
/// command line. Throws std::runtime_error if no trainer is left or too few join, CheckpointError
/// (NoAgreement if server 0 reports the reason), and batchrpc::Interrupted. `run` then holds the
/// results so far.
void run_server(ParameterServerOptions options, const std::vector<std::string>& arguments,
                std::chrono::steady_clock::time_point started,
                const batchrpc::InterruptFlag& interrupts, ServerRun& run);

}  // namespace batchrpc_examples
