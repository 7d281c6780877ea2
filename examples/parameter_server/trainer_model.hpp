#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "flat_parameters/flat_parameters.hpp"
#include "parameter_server/options.hpp"
#include "parameter_server/resnet.hpp"

namespace batchrpc_examples {

/// A trainer's copy of the model, which computes gradients of random images. Each call names the
/// trainer whose images to use, so that one process can do the work of all.
class TrainerModel {
 public:
  explicit TrainerModel(const ParameterServerOptions& options);

  /// The parameters and, if they are sent, the buffers, on the CPU. Receive into it, then call
  /// `received()`.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// The gradients of the parameters, on the CPU, to be sent.
  [[nodiscard]] const at::Tensor& gradients() const { return gradients_; }
  void received();

  /// Computes the gradients of one trainer's images in one iteration, and returns the loss.
  double compute_gradients(int trainer, std::int64_t iteration);

 private:
  const ParameterServerOptions options_;
  const at::Device device_;
  ResNet50 model_{nullptr};
  std::unique_ptr<FlatParameters> flat_;
  at::Tensor values_;  // those of `flat_`, or copies of them with CUDA
  at::Tensor gradients_;
};

/// The images and one-hot labels of a trainer in an iteration: [batch, 3, size, size] and [batch,
/// classes].
struct TrainingData {
  at::Tensor images;
  at::Tensor labels;
};
TrainingData training_data(const ParameterServerOptions& options, int trainer,
                           std::int64_t iteration);

}  // namespace batchrpc_examples
