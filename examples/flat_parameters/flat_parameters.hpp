#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace batchrpc_examples {

/// The parameters of a module in one dense tensor, and their gradients in another, of which the
/// module's own are views from then on: so all of them are one tensor on the way, sent without a
/// copy, and received in place. On the module's device, in the order of `parameters()`; on demand
/// with its float32 buffers behind, in the order of `buffers()`, which have no gradients.
class FlatParameters {
 public:
  /// Throws `std::invalid_argument` unless all parameters are float32 and on one device.
  explicit FlatParameters(torch::nn::Module& module, bool with_buffers = false);

  /// [numel], of parameters and buffers. To write to it is to write to the module.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// [numel], of parameters. `backward()` adds to it; zero it before.
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
  /// A view.
  [[nodiscard]] at::Tensor of(const at::Tensor& flat) const { return flat.slice(0, begin, end); }
};

/// How many elements FlatParameters::values() has.
std::int64_t flat_elements(const torch::nn::Module& module, bool with_buffers = false);
/// A copy of what FlatParameters::values() holds, or of a part of it: no more is allocated.
at::Tensor flat_values(const torch::nn::Module& module, bool with_buffers = false);
at::Tensor flat_values(const torch::nn::Module& module, bool with_buffers, const Shard& part);

/// Cuts so many elements into that many parts, whose sizes differ by one at most. Throws
/// `std::invalid_argument` unless there is an element for each.
std::vector<Shard> shards(std::int64_t elements, std::int64_t parts);

}  // namespace batchrpc_examples
