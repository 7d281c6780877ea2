#pragma once

#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// Runs one trainer, of the rank in the options, until its last iteration. Throws
/// std::runtime_error, in one line for people, when a server is gone or refuses what it is sent.
void run_trainer(const ParameterServerOptions& options);

}  // namespace batchrpc_examples
