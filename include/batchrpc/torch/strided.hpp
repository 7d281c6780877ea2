#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/torch/tensor.hpp"
#include "batchrpc/wire/codec.hpp"

namespace batchrpc {

/// A tensor that keeps its strides when it is sent, as an argument, a result or a part of either:
///
///     at::Tensor column_sums(const Strided& matrix) { return matrix.tensor.sum(0); }
///     node.call<&column_sums>("worker1", Strided{weights.t()});
///
/// batchrpc sends the storage from the view's first element to its last, with what lies between
/// them. So a transposed tensor is sent without a copy, an expanded one as small as it is, and a
/// view of every second row at twice its size. The received tensor is a view of just that piece,
/// with offset zero. Do not write to the tensor until the call has completed, as for at::Tensor.
/// Sparse and nested tensors are refused (InvalidArgument).
///
/// A peer chooses the shape: a small message may describe a tensor that is larger than any memory.
/// Check `tensor.numel()` of those from peers that you do not trust before you make them dense.
struct Strided {
  at::Tensor tensor;  ///< of any shape [d…] and device; undefined is allowed
};

/// Signature: `strided`.
template <>
struct Codec<Strided> {
  struct Wire {
    bool requires_grad = false;           ///< a leaf that requires a gradient
    at::Tensor elements{};                ///< [n]: those of the storage; undefined like the tensor
    std::vector<std::int64_t> sizes{};    ///< [d]
    std::vector<std::int64_t> strides{};  ///< [d], in elements, not negative
  };
  static constexpr std::string_view name = "strided";

  BATCHRPC_EXPORT static Wire encode(const Strided& value, Encoder& encoder);
  /// Throws BadMessage if the view reaches beyond its elements.
  BATCHRPC_EXPORT static Strided decode(Wire&& wire, Decoder& decoder);
};

}  // namespace batchrpc
