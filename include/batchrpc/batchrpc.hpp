#pragma once

/// The core of batchrpc. Each component has a header of its own beside it, and a target to link:
/// `batchrpc/profile.hpp`, `batchrpc/env.hpp`, `batchrpc/testing.hpp`, `batchrpc/status.hpp` and
/// `batchrpc/torch.hpp`.

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/interrupt.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/base/version.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/explain.hpp"
#include "batchrpc/call/refuse_call.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/future/async_queue.hpp"
#include "batchrpc/future/async_semaphore.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/when_all.hpp"
#include "batchrpc/future/when_any.hpp"
#include "batchrpc/future/when_n.hpp"
#include "batchrpc/metrics/node_metrics.hpp"
#include "batchrpc/node/exposing_objects.hpp"
#include "batchrpc/node/inspect.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/rref/rref.hpp"
