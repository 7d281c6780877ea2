#pragma once

/// The core of batchrpc, and its part for LibTorch, which also takes environments
/// (batchrpc/env.hpp). Link batchrpc::torch.

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/batch.hpp"
#include "batchrpc/torch/call_into.hpp"
#include "batchrpc/torch/env.hpp"
#include "batchrpc/torch/future.hpp"
#include "batchrpc/torch/ivalue.hpp"
#include "batchrpc/torch/module.hpp"
#include "batchrpc/torch/operator_source.hpp"
#include "batchrpc/torch/operators.hpp"
#include "batchrpc/torch/policy.hpp"
#include "batchrpc/torch/policy_batcher.hpp"
#include "batchrpc/torch/strided.hpp"
#include "batchrpc/torch/tensor.hpp"
