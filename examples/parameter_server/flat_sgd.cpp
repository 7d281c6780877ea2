#include "parameter_server/flat_sgd.hpp"

namespace batchrpc_examples {

FlatSgd::FlatSgd(const SgdOptions& options, std::int64_t elements) : options_(options) {
  if (options_.momentum != 0) velocity_ = at::zeros({elements});
}

void FlatSgd::step(const at::Tensor& values, const at::Tensor& gradient, at::Tensor& result) {
  const at::NoGradGuard no_grad;
  if (velocity_.defined()) velocity_.mul_(options_.momentum).add_(gradient);
  at::add_out(result, values, velocity_.defined() ? velocity_ : gradient, -options_.learning_rate);
}

}  // namespace batchrpc_examples
