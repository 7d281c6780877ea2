#include "tensor_benchmark/tensors.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace tensor_benchmark {

at::Tensor make_tensor(std::uint64_t bytes, bool contiguous) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(count)));
  while (count % rows != 0)
    --rows;
  const at::Tensor values =
      at::arange(count, at::kLong).remainder_(1 << 20).to(at::kFloat).view({rows, count / rows});
  return contiguous ? values : values.t();
}

}  // namespace tensor_benchmark
