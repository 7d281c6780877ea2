#pragma once

#include <ATen/ATen.h>

#include <batchrpc/batch/batch_info.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace batchrpc_examples {

struct GradientSumOptions {
  bool add = true;          ///< else gradients are received and dropped
  bool refuse_nan = false;  ///< a gradient that is not finite fails its trainer's call
};

/// Throws a batchrpc::InvalidArgument that states the expectation, unless `gradient` is a float32
/// tensor with that many elements.
void require_gradient(const at::Tensor& gradient, std::int64_t elements);

/// The total of a batch of gradients.
struct GradientTotal {
  at::Tensor sum;  ///< undefined if gradients are not added
  std::int64_t gradients = 0;
  double seconds = 0;  ///< time of the additions
};

/// The reducer of a batch of gradients. It adds them up and passes the total to `finish(total,
/// info)`, which may write to the sum. The result of `finish` is the answer to all.
class GradientSum {
 public:
  using Finish =
      std::function<at::Tensor(const GradientTotal& total, const batchrpc::BatchInfo& info)>;

  GradientSum(std::int64_t elements, const GradientSumOptions& options, Finish finish);

  void begin() { total_.gradients = 0, total_.seconds = 0; }
  /// For a gradient that cannot be added, throws batchrpc::InvalidArgument and stays unchanged.
  void accumulate(const at::Tensor& gradient);
  at::Tensor finish(const batchrpc::BatchInfo& info);

 private:
  std::int64_t elements_;
  GradientSumOptions options_;
  Finish finish_;
  GradientTotal total_;
};

}  // namespace batchrpc_examples
