#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "parameter_server/options.hpp"
#include "parameter_server/run_record.hpp"

namespace batchrpc_examples {

/// What a server's process knows in the end.
struct ServerRun {
  std::int64_t elements = 0;  ///< parameters of the whole model
  std::int64_t first_iteration = 0;
  double setup_seconds = 0;  ///< until the first iteration
  double work_seconds = 0;
  std::int64_t memory_bytes = 0;  ///< the most, less what the process has without a model
  std::int64_t message_bytes = 0;
  std::vector<IterationRecord> iterations;
  std::vector<std::string> lost{};
  std::string gradients;  ///< whose the model has had: as gradient_settings(), or others
  std::vector<std::string> failed_trainers{};  ///< and why, of those who have said it
  std::vector<std::string> failed_servers{};   ///< and how they ended
  std::string checkpoint_error;  ///< why the last checkpoint was not written; empty: it was
  at::Tensor values;  ///< with --check those that trainer 0 has, else this server's part;
                      ///< undefined when the run failed before its end
  std::string error;  ///< why the run failed; empty: it did not
};

/// Runs a server, and where the options have no rank starts all other processes with
/// `arguments`, the command line. Throws std::runtime_error when no trainer is left or too few
/// come, CheckpointError (NoAgreement where server 0 says why), and Interrupted; `run` then holds
/// what was measured until there.
void run_server(ParameterServerOptions options, const std::vector<std::string>& arguments,
                std::chrono::steady_clock::time_point started, const InterruptFlag& interrupts,
                ServerRun& run);

}  // namespace batchrpc_examples
