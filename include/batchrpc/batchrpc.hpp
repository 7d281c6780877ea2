#pragma once

/// Everything that needs no LibTorch. `batchrpc/torch.hpp` adds tensors.

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/base/version.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/explain.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/when_all.hpp"
#include "batchrpc/future/when_any.hpp"
#include "batchrpc/metrics/node_metrics.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/profile/profiler.hpp"
#include "batchrpc/rref/exposing_objects.hpp"
#include "batchrpc/rref/rref.hpp"
