#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// A policy that lives with the environments, so that a worker takes several steps by itself
/// (VectorEnv::rollout_async). Thread-safe: groups of two buffers act at the same time, and an
/// update comes whenever it comes.
class BATCHRPC_EXPORT WorkerPolicy {
 public:
  /// The most buffers that a driver has (VectorEnvOptions::buffers).
  static constexpr std::size_t kMostBuffers = 16;

  virtual ~WorkerPolicy();

  /// How many numbers act() gives beside each action: a log-probability, say, and a value.
  [[nodiscard]] virtual std::size_t extras() const noexcept = 0;
  /// Chooses an action for each of the k environments of a buffer, by what they see, [k, …]: writes
  /// actions [k, …], as the spec has them, and `extras` [k, extras()]. `buffer` counts from 0; one
  /// call of each at a time. Returns the version of the weights that it has used, of one version
  /// for all rows. What it throws, and an action that the spec does not allow, loses the worker at
  /// the driver, until it is replaced.
  virtual std::uint64_t act(std::size_t buffer, std::size_t rows,
                            std::span<const std::byte> observations, std::span<std::byte> actions,
                            std::span<float> extras) = 0;
  /// Takes weights that VectorEnv::push_policy() has sent: one call at a time, of one driver never
  /// with a lower version than before. What it throws loses the worker at the driver, until it is
  /// replaced.
  virtual void update(Bytes weights, std::uint64_t version) = 0;
};

}  // namespace batchrpc
