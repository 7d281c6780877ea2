#include "parameter_server/shared_model.hpp"

#include <utility>

namespace batchrpc_examples {
namespace {

bool is_ours_alone(const at::Tensor& tensor) {
  return tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

}  // namespace

SharedModel::SharedModel(at::Tensor values, std::int64_t parameters, const SgdOptions& options)
    : parameters_(parameters),
      elements_(values.numel()),
      values_(std::move(values)),
      sgd_(options, parameters_) {}

at::Tensor SharedModel::values() const {
  const std::lock_guard lock(mutex_);
  return values_;
}

void SharedModel::restore(const at::Tensor& values, const at::Tensor& velocity) {
  const std::lock_guard lock(mutex_);
  values_.copy_(values);
  if (velocity.defined()) sgd_.velocity().copy_(velocity);
}

at::Tensor SharedModel::step(const at::Tensor& gradient) {
  const std::lock_guard lock(mutex_);
  if (is_ours_alone(values_)) {
    step_into(values_, gradient);
  } else {
    if (!is_ours_alone(spare_)) spare_ = at::empty_like(values_);
    step_into(spare_, gradient);
    spare_.slice(0, parameters_).copy_(values_.slice(0, parameters_));
    std::swap(values_, spare_);
  }
  return values_;
}

void SharedModel::step_into(at::Tensor& result, const at::Tensor& gradient) {
  at::Tensor place = result.slice(0, 0, parameters_);
  sgd_.step(values_.slice(0, 0, parameters_), gradient, place);
}

}  // namespace batchrpc_examples
