#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace batchrpc_examples::ppo {

/// Adam (Kingma and Ba 2015), as in torch::optim::Adam, with betas .9 and .999 and an epsilon of
/// 1e-5, on one flat tensor.
class FlatAdam {
 public:
  explicit FlatAdam(std::int64_t elements)
      : mean_(at::zeros({elements})), square_(at::zeros({elements})) {}

  /// Updates `values` with `gradients`, both float32 [elements].
  void step(const at::Tensor& values, const at::Tensor& gradients, double learning_rate);

  /// Its whole state: running means of the gradient and of its square, float32 [elements], and the
  /// number of steps.
  /// @{
  [[nodiscard]] const at::Tensor& mean() const { return mean_; }
  [[nodiscard]] const at::Tensor& square() const { return square_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  void set_state(const at::Tensor& mean, const at::Tensor& square, std::int64_t steps);
  /// @}

 private:
  at::Tensor mean_;
  at::Tensor square_;
  std::int64_t steps_ = 0;
};

}  // namespace batchrpc_examples::ppo
