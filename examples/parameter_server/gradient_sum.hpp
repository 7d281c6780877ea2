#pragma once

#include <ATen/ATen.h>

#include <batchrpc/batch/batch_info.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace batchrpc_examples {

struct GradientSumOptions {
  bool add = true;          ///< else gradients are received and forgotten
  bool refuse_nan = false;  ///< one that is not finite fails its trainer's call
};

/// Throws batchrpc::InvalidArgument, which says what was expected, unless `gradient` is a float32
/// tensor of that many elements.
void require_gradient(const at::Tensor& gradient, std::int64_t elements);

/// What a batch of gradients has come to.
struct GradientTotal {
  at::Tensor sum;  ///< undefined when they are not added
  std::int64_t gradients = 0;
  double seconds = 0;  ///< of adding
};

/// The reducer of a batch of gradients: adds up those that there are, and gives the total to
/// `finish(total, info)`, which may write to the sum, and whose result answers all.
class GradientSum {
 public:
  using Finish =
      std::function<at::Tensor(const GradientTotal& total, const batchrpc::BatchInfo& info)>;

  GradientSum(std::int64_t elements, const GradientSumOptions& options, Finish finish);

  void begin() { total_.gradients = 0, total_.seconds = 0; }
  /// Throws batchrpc::InvalidArgument, and is as before, for a gradient that is not to be added.
  void accumulate(const at::Tensor& gradient);
  at::Tensor finish(const batchrpc::BatchInfo& info);

 private:
  std::int64_t elements_;
  GradientSumOptions options_;
  Finish finish_;
  GradientTotal total_;
};

}  // namespace batchrpc_examples
