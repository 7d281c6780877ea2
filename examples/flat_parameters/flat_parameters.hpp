#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace batchrpc_examples {

/// Holds the parameters of a module in one dense tensor, and their gradients in another. The
/// module's own tensors become views of these. So all parameters travel as one tensor, are sent
/// without a copy, and are received in place. The tensors are on the module's device, in the order
/// of `parameters()`. On demand the module's float32 buffers follow, in the order of `buffers()`;
/// they have no gradients.
class FlatParameters {
 public:
  /// Throws `std::invalid_argument` unless all parameters are float32 and on one device.
  explicit FlatParameters(torch::nn::Module& module, bool with_buffers = false);

  /// Parameters and buffers, [numel]. Writing to it writes to the module.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// The gradients of the parameters, [numel]. `backward()` adds to it; zero it before.
  [[nodiscard]] const at::Tensor& gradients() const { return gradients_; }

 private:
  at::Tensor values_;
  at::Tensor gradients_;
};

/// A part of a flat tensor: the elements in [begin, end).
struct Shard {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  /// Returns a view.
  [[nodiscard]] at::Tensor of(const at::Tensor& flat) const { return flat.slice(0, begin, end); }
};

/// The number of elements of FlatParameters::values().
std::int64_t flat_elements(const torch::nn::Module& module, bool with_buffers = false);
/// A copy of FlatParameters::values(), or of a part of it. Allocates no more than that.
at::Tensor flat_values(const torch::nn::Module& module, bool with_buffers = false);
at::Tensor flat_values(const torch::nn::Module& module, bool with_buffers, const Shard& part);

/// Cuts `elements` elements into `parts` parts whose sizes differ by at most one. Throws
/// `std::invalid_argument` unless each part has an element.
std::vector<Shard> shards(std::int64_t elements, std::int64_t parts);

}  // namespace batchrpc_examples
