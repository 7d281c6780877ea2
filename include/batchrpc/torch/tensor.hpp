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

/// Such as "float32 [64, 4]"; "an undefined tensor"; "int64 [2] on cuda:0".
[[nodiscard]] BATCHRPC_EXPORT std::string describe_tensor(const at::Tensor& tensor);
/// Such as "float32".
[[nodiscard]] BATCHRPC_EXPORT std::string describe_type(at::ScalarType type);

/// The payload that the tensor is a view of, as it was received; null for tensors made otherwise.
[[nodiscard]] BATCHRPC_EXPORT const Bytes* received_bytes(const at::Tensor& tensor);

}  // namespace detail

/// Tensors as arguments and results of remote functions, alone or inside of what the core's codecs
/// know: `std::vector<at::Tensor>`, `std::map<std::string, at::Tensor>`, optionals, tuples,
/// aggregates. Signature: `tensor`.
///
/// What arrives is a tensor of the same type, shape and values, dense and row-major, whatever the
/// strides, storage or offset of what was sent; a view sends its own elements and nothing else of
/// its storage. Undefined, empty and 0-dimensional tensors are tensors like others. It arrives on
/// the CPU, also when it was sent from a GPU, since one node's devices mean nothing to another:
/// `.to(device)` is the receiver's.
///
/// Autograd: a graph does not travel. A leaf (a parameter) that requires a gradient arrives as a
/// leaf that does; what a computation has made arrives as plain data.
///
/// Types: bool, integers, float16, bfloat16, float32, float64, complex numbers, and of LibTorch 2
/// unsigned integers and 8-bit floats; a receiver whose LibTorch lacks a type refuses it
/// (BadMessage). Quantized, sparse, nested and meta tensors, and more than 64 dimensions, are
/// refused when sent (InvalidArgument).
///
/// Copies: a dense tensor on the CPU of more than 16 KiB is sent from where it lies. It must not be
/// written, resized or set until the future of its call has completed; as a result, until the
/// caller has it. A build without NDEBUG warns (TORCH_WARN) when the tensor's version counter says
/// that it was. Smaller ones, and all that are not dense or not on the CPU, are copied while the
/// call is made. What arrives is used where it was received, aligned to 64 bytes: the tensor is the
/// receiver's alone, may be written, and cannot be resized to more elements.
template <>
struct Codec<at::Tensor> {
  using Wire = detail::TensorHeader;
  static constexpr std::string_view name = "tensor";

  /// The header refers to the tensor's sizes.
  BATCHRPC_EXPORT static Wire encode(const at::Tensor& tensor, Encoder& encoder);
  BATCHRPC_EXPORT static at::Tensor decode(Wire&& header, Decoder& decoder);
};

}  // namespace batchrpc
