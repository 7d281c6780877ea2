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
/// Of one step, the usual case, shapes begin with [G · k], one row an environment; of n steps with
/// [G, n, k].
namespace batchrpc {

/// LibTorch's type for these elements.
[[nodiscard]] BATCHRPC_EXPORT at::ScalarType scalar_type_of(ElementType type);

/// [G · k, …] or [G, n, k, …]. Shares the batch's memory, without a copy, and keeps it; whoever
/// has the batch or other such tensors of it sees what is written.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor observations_of(const EnvBatch& batch);
/// [F, …], of EnvBatch::final_rows; shares memory likewise.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor final_observations_of(const EnvBatch& batch);
/// Of a rollout, [G · k, …] or [G, n, k, …]; shares memory likewise. Throws InvalidArgument for a
/// batch that is of none.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor actions_of(const EnvBatch& batch);

/// float32 [G · k] or [G, n, k]; a copy, as those below.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor rewards_of(const EnvBatch& batch);
/// bool [G · k] or [G, n, k].
/// @{
[[nodiscard]] BATCHRPC_EXPORT at::Tensor terminated_of(const EnvBatch& batch);
[[nodiscard]] BATCHRPC_EXPORT at::Tensor truncated_of(const EnvBatch& batch);
[[nodiscard]] BATCHRPC_EXPORT at::Tensor started_of(const EnvBatch& batch);
[[nodiscard]] BATCHRPC_EXPORT at::Tensor valid_of(const EnvBatch& batch);
/// @}
/// Of a rollout, float32 [G · k, e] or [G, n, k, e]. Throws InvalidArgument for a batch that is of
/// none.
[[nodiscard]] BATCHRPC_EXPORT at::Tensor extras_of(const EnvBatch& batch);

/// VectorEnv::step_async() with a tensor [G, steps, k, …], or of one step [G · k, …] or [G, k, …],
/// of the spec's type; of discrete actions any integers. Throws as that does; InvalidArgument, too,
/// for a tensor of another type or shape.
BATCHRPC_EXPORT void step_async(VectorEnv& envs, const EnvBatch& batch, const at::Tensor& actions,
                                std::size_t steps = 1);

}  // namespace batchrpc
