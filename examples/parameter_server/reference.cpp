#include "parameter_server/reference.hpp"

#include "parameter_server/flat_sgd.hpp"
#include "parameter_server/trainer_model.hpp"

namespace batchrpc_examples {

at::Tensor train_alone(const ParameterServerOptions& options) {
  TrainerModel model(options);
  FlatSgd sgd({.learning_rate = options.learning_rate, .momentum = options.momentum},
              model.gradients().numel());
  at::Tensor mean = at::empty_like(model.gradients());
  at::Tensor values = model.values().slice(0, 0, mean.numel());
  for (std::int64_t iteration = 0; iteration < options.iterations; ++iteration) {
    mean.zero_();
    model.received();
    for (int trainer = 0; trainer < options.trainers; ++trainer) {
      model.compute_gradients(trainer, iteration);
      mean.add_(model.gradients());
    }
    mean.div_(static_cast<double>(options.trainers));
    sgd.step(values, mean, values);
  }
  return values;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::NoGradGuard no_grad;
  return ((a - b).abs() / b.abs().clamp_min(1e-30)).max().item<double>();
}

}  // namespace batchrpc_examples
