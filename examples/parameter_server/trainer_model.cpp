#include "parameter_server/trainer_model.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/nn/functional/loss.h>

namespace batchrpc_examples {
namespace {

at::Generator generator(std::uint64_t seed, std::uint64_t trainer, std::uint64_t iteration) {
  std::uint64_t mixed = seed;
  for (const std::uint64_t part : {trainer, iteration}) {
    mixed += 0x9e3779b97f4a7c15 * (part + 1);  // splitmix64
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
  }
  return at::make_generator<at::CPUGeneratorImpl>(mixed);
}

// CUDA may add in another order each time, and in such a deep network that changes the training.
void compute_reproducibly() {
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

}  // namespace

TrainingData training_data(const ParameterServerOptions& options, int trainer,
                           std::int64_t iteration) {
  const auto index = static_cast<std::uint64_t>(trainer);
  const auto when = static_cast<std::uint64_t>(iteration);
  at::Tensor classes = at::randint(0, options.classes, {options.batch_size, 1},
                                   generator(options.seed, index, ~std::uint64_t{0}), at::kLong);
  return {at::randn({options.batch_size, 3, options.image, options.image},
                    generator(options.seed, index, when)),
          at::zeros({options.batch_size, options.classes}).scatter_(1, classes, 1)};
}

TrainerModel::TrainerModel(const ParameterServerOptions& options)
    : options_(options),
      device_(options.cuda ? at::kCUDA : at::kCPU),
      model_(options.classes, options.seed) {
  if (options.cuda && options.check) compute_reproducibly();
  model_->to(device_);
  flat_ = std::make_unique<FlatParameters>(*model_, options.buffers);
  values_ = options.cuda ? flat_->values().cpu().pin_memory() : flat_->values();
  gradients_ =
      options.cuda ? at::empty_like(flat_->gradients(), at::kCPU).pin_memory() : flat_->gradients();
}

void TrainerModel::received() {
  const at::NoGradGuard no_grad;
  if (options_.cuda) flat_->values().copy_(values_);
}

double TrainerModel::compute_gradients(int trainer, std::int64_t iteration) {
  const TrainingData data = training_data(options_, trainer, iteration);
  flat_->gradients().zero_();
  const at::Tensor loss = torch::nn::functional::mse_loss(model_->forward(data.images.to(device_)),
                                                          data.labels.to(device_));
  loss.backward();
  const at::NoGradGuard no_grad;
  if (options_.cuda) gradients_.copy_(flat_->gradients());
  return loss.item<double>();
}

}  // namespace batchrpc_examples
