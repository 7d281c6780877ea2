#include "parameter_server/gradient_sum.hpp"

#include <batchrpc/base/error.hpp>
#include <batchrpc/torch/tensor.hpp>
#include <cmath>
#include <string>
#include <utility>

namespace batchrpc_examples {

namespace {

// The sum of a slice is finite unless an element is not (or the sum overflows, which is as bad).
// Slices fit the cache.
bool is_finite(const at::Tensor& gradient) {
  constexpr std::int64_t kSlice = 65536;
  for (std::int64_t begin = 0; begin < gradient.numel(); begin += kSlice) {
    if (!std::isfinite(gradient.slice(0, begin, begin + kSlice).sum().item<float>())) return false;
  }
  return true;
}

}  // namespace

void require_gradient(const at::Tensor& gradient, std::int64_t elements) {
  if (gradient.defined() && gradient.scalar_type() == at::kFloat && gradient.dim() == 1 &&
      gradient.numel() == elements) {
    return;
  }
  throw batchrpc::InvalidArgument("expected a gradient float32 [" + std::to_string(elements) +
                                  "], got " + batchrpc::detail::describe_tensor(gradient));
}

GradientSum::GradientSum(std::int64_t elements, const GradientSumOptions& options, Finish finish)
    : elements_(elements), options_(options), finish_(std::move(finish)) {}

void GradientSum::accumulate(const at::Tensor& gradient) {
  const auto start = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  require_gradient(gradient, elements_);
  if (options_.refuse_nan && !is_finite(gradient)) {
    throw batchrpc::InvalidArgument("the gradient contains NaN or infinity");
  }
  if (options_.add) {
    if (!total_.sum.defined()) total_.sum = at::empty({elements_});
    total_.gradients == 0 ? total_.sum.copy_(gradient) : total_.sum.add_(gradient);
  }
  ++total_.gradients;
  total_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

at::Tensor GradientSum::finish(const batchrpc::BatchInfo& info) { return finish_(total_, info); }

}  // namespace batchrpc_examples
