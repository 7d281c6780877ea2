#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/torch/tensor_header.hpp"
#include "batchrpc/wire/codec.hpp"

namespace batchrpc {
namespace detail {

/// A text such as "float32 [64, 4]", "an undefined tensor" or "int64 [2] on cuda:0".
[[nodiscard]] BATCHRPC_EXPORT std::string describe_tensor(const at::Tensor& tensor);
/// The name of a type, such as "float32".
[[nodiscard]] BATCHRPC_EXPORT std::string describe_type(at::ScalarType type);

/// Warns once in a process (TORCH_WARN) if the tensor is the result of a computation with a graph,
/// which does not travel.
void warn_of_graph(const at::Tensor& tensor);

/// The received payload that the tensor is a view of; null for other tensors.
[[nodiscard]] BATCHRPC_EXPORT const Bytes* received_bytes(const at::Tensor& tensor);

}  // namespace detail

/// Encodes tensors as arguments and results of remote functions, alone or inside types that the
/// core's codecs support: `std::vector<at::Tensor>`, `std::map<std::string, at::Tensor>`,
/// optionals, tuples, aggregates. Signature: `tensor`.
///
/// The received tensor has the same type, shape and values. A dense one is row-major, whatever the
/// strides, storage or offset of the tensor that was sent (Strided keeps the strides); a view sends
/// only its own elements. A sparse one has the same layout, COO or CSR; its parts are copied.
/// A peer chooses its shape: check numel() before you make one dense that comes from a peer that
/// you do not trust. Undefined, empty and 0-dimensional tensors are allowed. A tensor arrives on
/// the CPU even if it was sent from a GPU, because a node's devices mean nothing to another node.
/// The receiver may call `.to(device)`.
///
/// Autograd: a graph does not travel. A leaf (a parameter) that requires a gradient arrives as a
/// leaf that requires one. The result of a computation arrives as plain data, of which a process is
/// warned once (TORCH_WARN).
///
/// Types: bool, integers, float16, bfloat16, float32, float64, complex numbers, and LibTorch 2's
/// unsigned integers and 8-bit floats. If the receiver's LibTorch lacks a type, it refuses the
/// message (BadMessage). Quantized, nested and meta tensors, other sparse layouts, and tensors of
/// more than 64 dimensions are refused when sent (InvalidArgument).
///
/// Copies: a dense tensor on the CPU of more than 16 KiB is sent from its own memory. Do not write,
/// resize or set it until the future of its call has completed; if it is a result, until the caller
/// has received it. A build without NDEBUG warns (TORCH_WARN) if the tensor's version counter shows
/// a write. Smaller tensors, and all that are not dense or not on the CPU, are copied during the
/// call. A received tensor uses the memory it was received into, aligned to 64 bytes. It belongs to
/// the receiver alone and may be written, but it cannot be resized to more elements.
template <>
struct Codec<at::Tensor> {
  using Wire = detail::TensorHeader;
  static constexpr std::string_view name = "tensor";

  /// The returned header refers to the tensor's sizes.
  BATCHRPC_EXPORT static Wire encode(const at::Tensor& tensor, Encoder& encoder);
  BATCHRPC_EXPORT static at::Tensor decode(Wire&& header, Decoder& decoder);
};

}  // namespace batchrpc
