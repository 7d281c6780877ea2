#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "parameter_server/flat_sgd.hpp"

namespace batchrpc_examples {

/// A server's model: flat parameters that are read and sent while they change. Values that were
/// given out never change: while they are still in use, a step writes to another buffer.
/// Thread-safe.
class SharedModel {
 public:
  /// The model takes over `values`: [n] parameters, followed by buffers, which steps do not change.
  SharedModel(at::Tensor values, std::int64_t parameters, const SgdOptions& options);

  /// The present parameters. Do not write to them.
  [[nodiscard]] at::Tensor values() const;
  [[nodiscard]] std::int64_t parameters() const { return parameters_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }  ///< parameters and buffers

  /// Makes one step of the optimizer and returns the new parameters. `gradient` is [n].
  at::Tensor step(const at::Tensor& gradient);

  /// Runs `use(values, velocity)` on the contents of a checkpoint while no step is made. The
  /// velocity is undefined without momentum.
  template <class Use>
  void use(Use&& use) const {
    const std::lock_guard lock(mutex_);
    use(values_, sgd_.velocity());
  }
  /// Restores values that use() passed earlier. Only allowed before any values were given out.
  void restore(const at::Tensor& values, const at::Tensor& velocity);

 private:
  void step_into(at::Tensor& result, const at::Tensor& gradient);

  const std::int64_t parameters_;
  const std::int64_t elements_;
  mutable std::mutex mutex_;
  at::Tensor values_;
  at::Tensor spare_;  // an old buffer, kept because a slow reader will be slow again
  FlatSgd sgd_;
};

}  // namespace batchrpc_examples
