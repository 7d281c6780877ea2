#pragma once

#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// Runs one trainer, with the rank in the options, until its last iteration. Throws a
/// std::runtime_error of one line if a server is gone or refuses a message.
void run_trainer(const ParameterServerOptions& options);

}  // namespace batchrpc_examples
