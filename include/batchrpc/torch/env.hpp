#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "batchrpc/base/export.hpp"
#include "batchrpc/env/array_spec.hpp"
#include "batchrpc/env/env_batch.hpp"
#include "batchrpc/env/vector_env.hpp"

/// Batches of a VectorEnv as tensors on the CPU, and tensors as actions:
///
///     batch = envs.reset();
///     batchrpc::step_async(envs, batch, policy(batchrpc::observations_of(batch)));
///     batch = envs.step_wait();
///
/// For one step, the usual case, shapes begin with [G · k], one row per environment. For n steps
/// they begin with [G, n, k].
namespace batchrpc {

/// LibTorch's type for elements of `type`.
[[nodiscard]] BATCHRPC_EXPORT at::ScalarType scalar_type_of(ElementType type);

/// The observations, [G · k, …] or [G, n, k, …]. The tensor shares the batch's memory without a
/// copy and keeps it alive. Writes are visible in the batch and in other such tensors.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor observations_of(const EnvBatch& batch);
/// The rows of EnvBatch::final_rows, [F, …]. Shares the batch's memory in the same way.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor final_observations_of(const EnvBatch& batch);
/// The actions of a rollout, [G · k, …] or [G, n, k, …]. Shares the batch's memory in the same way.
/// Throws InvalidArgument if the batch is not of a rollout.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor actions_of(const EnvBatch& batch);

/// float32 [G · k] or [G, n, k]. This tensor and those below are copies.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor rewards_of(const EnvBatch& batch);
/// bool [G · k] or [G, n, k].
/// @{
[[nodiscard]] BATCHRPC_EXPORT at::Tensor terminated_of(const EnvBatch& batch);
[[nodiscard]] BATCHRPC_EXPORT at::Tensor truncated_of(const EnvBatch& batch);
[[nodiscard]] BATCHRPC_EXPORT at::Tensor started_of(const EnvBatch& batch);
[[nodiscard]] BATCHRPC_EXPORT at::Tensor valid_of(const EnvBatch& batch);
/// @}
/// The extras of a rollout, float32 [G · k, e] or [G, n, k, e]. Throws InvalidArgument if the batch
/// is not of a rollout.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor extras_of(const EnvBatch& batch);

/// VectorEnv::step_async() with a tensor [G, steps, k, …], or for one step [G · k, …] or [G, k, …].
/// It must have the spec's type; discrete actions may be any integers. Throws like
/// VectorEnv::step_async(), and InvalidArgument for a tensor of another type or shape.
BATCHRPC_EXPORT void step_async(VectorEnv& envs, const EnvBatch& batch, const at::Tensor& actions,
                                std::size_t steps = 1);

}  // namespace batchrpc
