#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// A policy that runs on the worker, next to the environments, so that the worker can take several
/// steps by itself (VectorEnv::rollout_async). It must be thread-safe: groups of two buffers act
/// concurrently, and an update may come at any time.
class BATCHRPC_EXPORT WorkerPolicy {
 public:
  /// The most buffers of a driver (VectorEnvOptions::buffers).
  static constexpr std::size_t kMostBuffers = 16;

  virtual ~WorkerPolicy();

  /// The number of extra values that act() gives for each action, such as a log-probability and a
  /// value.
  [[nodiscard]] virtual std::size_t extras() const noexcept = 0;
  /// Chooses an action for each of the k environments of a buffer from their observations [k, …].
  /// Writes actions [k, …], as in the spec, and `extras` [k, extras()]. `buffer` counts from 0;
  /// each buffer has one call at a time. Returns the version of the weights used, the same for all
  /// rows. If it throws, or the spec does not allow an action, the driver counts the worker as lost
  /// until it is replaced.
  virtual std::uint64_t act(std::size_t buffer, std::size_t rows,
                            std::span<const std::byte> observations, std::span<std::byte> actions,
                            std::span<float> extras) = 0;
  /// Takes weights sent by VectorEnv::push_policy(). Calls come one at a time, and from one driver
  /// never with a lower version than before. If it throws, the driver counts the worker as lost
  /// until it is replaced.
  virtual void update(Bytes weights, std::uint64_t version) = 0;
};

}  // namespace batchrpc
