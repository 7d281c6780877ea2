#pragma once

/// Environments in other processes, stepped in batches; see docs/vectorised-environments.md.

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/env/array_spec.hpp"
#include "batchrpc/env/autoreset.hpp"
#include "batchrpc/env/env.hpp"
#include "batchrpc/env/env_batch.hpp"
#include "batchrpc/env/env_group.hpp"
#include "batchrpc/env/env_worker.hpp"
#include "batchrpc/env/lanes.hpp"
#include "batchrpc/env/vector_env.hpp"
#include "batchrpc/env/worker_policy.hpp"
