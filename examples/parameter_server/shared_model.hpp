#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "parameter_server/flat_sgd.hpp"

namespace batchrpc_examples {

/// What a server keeps: flat parameters that are read, and sent, while they change. A value that
/// was given out stays as it was: when somebody still has it, a step writes to another buffer.
/// Thread-safe.
class SharedModel {
 public:
  /// `values` become the model's: [n] parameters, and buffers behind, which steps leave as they
  /// are.
  SharedModel(at::Tensor values, std::int64_t parameters, const SgdOptions& options);

  /// The parameters of this moment, not to be written to.
  [[nodiscard]] at::Tensor values() const;
  [[nodiscard]] std::int64_t parameters() const { return parameters_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }  ///< with buffers

  /// One step of the optimizer; gives the new parameters. `gradient` [n].
  at::Tensor step(const at::Tensor& gradient);

  /// Runs `use(values, velocity)`, what a checkpoint holds, while no step is made; the velocity is
  /// undefined without momentum.
  template <class Use>
  void use(Use&& use) const {
    const std::lock_guard lock(mutex_);
    use(values_, sgd_.velocity());
  }
  /// What use() gave before. Only while nobody has been given the values.
  void restore(const at::Tensor& values, const at::Tensor& velocity);

 private:
  void step_into(at::Tensor& result, const at::Tensor& gradient);

  const std::int64_t parameters_;
  const std::int64_t elements_;
  mutable std::mutex mutex_;
  at::Tensor values_;
  at::Tensor spare_;  // what was given out before values_: kept, since who is slow once is so again
  FlatSgd sgd_;
};

}  // namespace batchrpc_examples
