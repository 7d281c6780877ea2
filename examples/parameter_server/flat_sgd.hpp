#pragma once

#include <ATen/ATen.h>

namespace batchrpc_examples {

struct SgdOptions {
  double learning_rate = 1e-3;
  double momentum = 0.9;
};

/// SGD with momentum, as in torch::optim::SGD, on one flat tensor.
class FlatSgd {
 public:
  /// `velocity` is zero at the start; undefined without momentum.
  FlatSgd(const SgdOptions& options, std::int64_t elements);

  /// v = momentum v + gradient; result = values - learning_rate v. `result` may be `values`.
  void step(const at::Tensor& values, const at::Tensor& gradient, at::Tensor& result);

  [[nodiscard]] const at::Tensor& velocity() const { return velocity_; }

 private:
  SgdOptions options_;
  at::Tensor velocity_;
};

}  // namespace batchrpc_examples
