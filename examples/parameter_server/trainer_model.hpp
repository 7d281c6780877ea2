#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "flat_parameters/flat_parameters.hpp"
#include "parameter_server/options.hpp"
#include "parameter_server/resnet.hpp"

namespace batchrpc_examples {

/// A trainer's copy of the model, which computes gradients of random images. Whose images they
/// are is told with each call, so that one process can do the work of all.
class TrainerModel {
 public:
  explicit TrainerModel(const ParameterServerOptions& options);

  /// Parameters and, if they are sent, buffers, on the CPU: to be received into, with `received()`
  /// behind.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// Of the parameters, on the CPU: to be sent.
  [[nodiscard]] const at::Tensor& gradients() const { return gradients_; }
  void received();

  /// Of the images of one trainer in one iteration; gives the loss.
  double compute_gradients(int trainer, std::int64_t iteration);

 private:
  const ParameterServerOptions options_;
  const at::Device device_;
  ResNet50 model_{nullptr};
  std::unique_ptr<FlatParameters> flat_;
  at::Tensor values_;  // those of `flat_`, or with CUDA copies of them
  at::Tensor gradients_;
};

/// The images and one-hot labels of a trainer in an iteration: [batch, 3, size, size] and
/// [batch, classes].
struct TrainingData {
  at::Tensor images;
  at::Tensor labels;
};
TrainingData training_data(const ParameterServerOptions& options, int trainer,
                           std::int64_t iteration);

}  // namespace batchrpc_examples
